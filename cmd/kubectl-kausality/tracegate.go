// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// gateWait is an open gate, and what it waits for.
type gateWait struct {
	// Object whose gate is open; absent where it is the one that was asked about.
	Object *objectRef `json:"object,omitempty"`
	// Why says what it waits for, for a person.
	Why string `json:"why"`
}

// gater says what a policy says of the gates that its allowances open.
type gater interface {
	gate(ctx context.Context, policy string) *policy.Gate
}

// gate reads it from the policy.
func (c *cluster) gate(ctx context.Context, name string) *policy.Gate {
	gvk := v1alpha1.GroupVersion().WithKind("AllowancePolicy")

	u, err := c.read(ctx, gvk, "", name)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}

	p := &v1alpha1.AllowancePolicy{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
	}

	if err != nil {
		return &policy.Gate{Broken: fmt.Errorf("cannot read AllowancePolicy %q: %w", name, err)}
	}

	return policy.NewCache().Gate(p)
}

// wait reads what open gates wait for: that of the object, and of what is made for it.
// The manager may have been started with a longer --settle.
func (d *traceDocument) wait(u *unstructured.Unstructured, near related) {
	d.waitIn(u, nil, near.gates)

	for _, child := range near.children {
		ref := refOf(child)
		d.waitIn(child, &ref, near.gates)
	}
}

func (d *traceDocument) waitIn(u *unstructured.Unstructured, ref *objectRef, gates func(string) *policy.Gate) {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateOpen || !resource.IsManaged(u) {
		return // What does not parse is reported where it is read first.
	}

	plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true, PolicyGate: gates}, time.Now())
	if err != nil {
		return
	}

	why := plan.Why
	if plan.Move != gate.Stay {
		why = "waiting for Kausality to move it"
	}

	d.Waits = append(d.Waits, gateWait{Object: ref, Why: why})
}

// renderWaits writes what open gates wait for.
func renderWaits(out *strings.Builder, list []gateWait) {
	for i, w := range list {
		if w.Object == nil {
			fmt.Fprintf(out, "It is %s\n", w.Why)

			continue
		}

		if i == 0 || list[i-1].Object == nil {
			out.WriteString("\n")
		}

		fmt.Fprintf(out, "The gate of %s %s is open, %s\n", w.Object.Kind, w.Object.Name, w.Why)
	}
}
