// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// The parts of a booth, by kind, beside its managed resource and the external object.
const (
	composite      = "Booth"
	pendingChange  = "PendingChange"
	changeApproval = "ChangeApproval"
)

const (
	annaUser = "anna@example.com"
	// berta approves what anna asks for.
	berta = "berta@example.com"
)

// booth is an XR of which anna asks for other sizes, which she may not.
type booth struct {
	client.Client

	anna  client.Client
	berta world.Approver
	name  string
	// digests are those that changes had, by the size they were to.
	digests map[string]string
}

func (b *booth) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: composite}
}

// parts is where all of it is while a change is approved.
func (b *booth) parts(a approved) map[string]part {
	own := v1alpha1.GroupVersion()

	return map[string]part{
		composite:      {b.kind().GroupVersion().WithResource("booths"), namespace, b.name},
		managed:        {schema.GroupVersionResource{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Resource: "objects"}, namespace, b.name},
		external:       {schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace, b.name},
		pendingChange:  {own.WithResource("pendingchanges"), namespace, pending.Name(b.kind().GroupKind(), b.name)},
		changeApproval: {own.WithResource("changeapprovals"), namespace, a.name()},
	}
}

// newBooth makes a small booth, and waits until it is at rest.
func newBooth(t *testing.T, name string) *booth {
	t.Helper()

	text, err := os.ReadFile("testdata/booths.yaml")
	if err != nil {
		t.Fatal(err)
	}

	if err := apply(t, string(text)); err != nil {
		t.Fatal(err)
	}

	b := &booth{
		Client: world.ConnectTyped(t, running.Config()), anna: as(t, "anna"), name: name, digests: map[string]string{},
		berta: world.NewApprover(t, running, namespace, berta, [3]string{v1alpha1.VerbApprove, "kubernetes.m.crossplane.io", "objects"}),
	}

	u := named("shop.example.org/v1", composite, name)
	u.Object["spec"] = map[string]any{"size": "small"}

	hans := as(t, "hans")

	world.Eventually(t, "a new booth", func(ctx context.Context) error { return client.IgnoreAlreadyExists(hans.Create(ctx, u.DeepCopy())) })
	world.Eventually(t, "a booth at rest", func(ctx context.Context) error { return b.quiet(ctx, approved{size: "small"}) })

	if err := age(t.Context(), hans, b.object(approved{}, managed)); err != nil {
		t.Fatal(err)
	}

	return b
}

// object is a part with its identity only.
func (b *booth) object(a approved, kind string) *unstructured.Unstructured {
	p := b.parts(a)[kind]
	u := named(p.gvr.GroupVersion().String(), kind, p.name)

	return u
}

func (b *booth) get(ctx context.Context, a approved, kind string) (*unstructured.Unstructured, error) {
	u := b.object(a, kind)

	return u, b.Get(ctx, client.ObjectKeyFromObject(u), u)
}

// quiet checks that a booth has a size, and that nothing is held or under way.
func (b *booth) quiet(ctx context.Context, a approved) error {
	u, err := b.get(ctx, a, external)
	if err != nil {
		return err
	}

	if got := resource.String(u.Object, "data", "size"); got != a.size {
		return fmt.Errorf("the external object's size is %q, want %q: %w", got, a.size, world.ErrOther)
	}

	for _, kind := range []string{composite, managed} {
		if u, err = b.get(ctx, a, kind); err != nil {
			return err
		}

		if list, err := allowance.Parse(u); err != nil || len(list) > 0 {
			return fmt.Errorf("%s carries %+v (%w): %w", kind, list, err, world.ErrOther)
		}

		if kind == composite && (!settled(u) || resource.Annotation(u, v1alpha1.AnnotationHeld) != "") {
			got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

			return fmt.Errorf("XR at generation %d: %q, edits %s: %w", u.GetGeneration(), got.Message, resource.Annotation(u, v1alpha1.AnnotationHeld), world.ErrOther)
		}
	}

	if rec, err := allowance.ParseGate(u); err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
		return fmt.Errorf("the gate is %+v (%w): %w", rec, err, world.ErrOther)
	}

	return nil
}

// finished checks that the PendingChange says that all was approved, and made.
func (b *booth) finished(ctx context.Context, a approved) error {
	u, err := b.get(ctx, a, pendingChange)
	if err != nil {
		return err
	}

	pch := &v1alpha1.PendingChange{}
	if err := typed(u, pch); err != nil {
		return err
	}

	is := pch.Status
	if is.Total != 0 || is.FinishedAt == nil || !meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionApproved) ||
		!meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionApplied) {
		return fmt.Errorf("the PendingChange is %+v: %w", is, world.ErrOther)
	}

	return nil
}

// remembered checks that the booth remembers an approval, once, and that its managed resource says
// that it is the reason.
func (b *booth) remembered(ctx context.Context, a approved, cha *v1alpha1.ChangeApproval) error {
	u, err := b.get(ctx, a, composite)
	if err != nil {
		return err
	}

	list, err := allowance.ParseApproved(u)
	if err != nil {
		return err
	}

	want := v1alpha1.ApprovedChange{Approval: cha.Name, UID: cha.UID, Digest: cha.Spec.Changes[0]}
	list = slices.DeleteFunc(list, func(e v1alpha1.ApprovedChange) bool { return e.UID != cha.UID })

	if !slices.Equal(list, []v1alpha1.ApprovedChange{want}) {
		return fmt.Errorf("%+v is remembered, want %+v: %w", list, want, world.ErrOther)
	}

	if u, err = b.get(ctx, a, managed); err != nil {
		return err
	}

	trace, err := allowance.ParseTrace(u)
	if err != nil {
		return err
	}

	for _, e := range trace {
		if e.Field == "spec.forProvider.manifest.data.size" && e.Initiator == berta && len(e.Trace) > 0 && e.Trace[0].Name == cha.Name {
			return nil
		}
	}

	return fmt.Errorf("the trace %+v does not begin with %q: %w", trace, cha.Name, world.ErrOther)
}

// dump shows all there is.
func (b *booth) dump(ctx context.Context, a approved) string {
	var out strings.Builder

	for _, kind := range []string{composite, managed, external, pendingChange, changeApproval} {
		u, err := b.get(ctx, a, kind)
		if apierrors.IsNotFound(err) {
			continue
		}

		u.SetManagedFields(nil)

		raw, err2 := yaml.Marshal(u.Object)
		fmt.Fprintf(&out, "---\n%s", raw)

		if err := errors.Join(err, err2); err != nil {
			fmt.Fprintln(&out, err)
		}
	}

	return out.String()
}
