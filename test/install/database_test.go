// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// example is what is governed while packages come and go.
const example = "../../examples/claim-with-ticket/"

// database is that of the example: a Claim, an XR, a managed resource of
// provider-kubernetes, and a ConfigMap as its external object.
type database struct {
	c, hans *cluster
	// claim, xr and managed are as they were when they were last read.
	claim, xr, managed *unstructured.Unstructured
}

// newDatabase applies the example, with the function as the Configuration names
// it, gives the manager rights, and waits until its gate is closed.
func newDatabase(t *testing.T, c *cluster, rights func(t *testing.T)) *database {
	t.Helper()

	config, err := running.ConfigFor("hans")
	db := &database{c: c, hans: connect(t, config, err)}

	composition := bytes.ReplaceAll(read(t, example+"composition.yaml"), []byte("name: function-kausality"), []byte("name: "+functionName))
	for _, manifest := range [][]byte{read(t, example+"xrd.yaml"), composition, read(t, example+"policies.yaml")} {
		c.apply(t, manifest)
	}

	rights(t)

	for _, name := range []string{"database-claim-to-xr", "xdatabase-to-object"} {
		p := prototype("kausality.io", "v1alpha1", "AllowancePolicy")
		p.SetName(name)
		c.condition(t, p, "Ready")
	}

	claim := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(read(t, example+"claim.yaml"), claim); err != nil {
		t.Fatal(err)
	}

	// The API server learns of webhook configurations with a delay.
	world.Eventually(t, "the webhook to be asked about Claims", func(ctx context.Context) error {
		u := claim.DeepCopy()
		if err := db.hans.Create(ctx, u, client.DryRunAll); err != nil {
			return err
		}

		if resource.Annotation(u, v1alpha1.AnnotationTrace) == "" {
			return world.ErrOther
		}

		return nil
	})

	db.hans.apply(t, read(t, example+"claim.yaml"))
	db.settles(t, "small")

	return db
}

// read reads the Claim, and what it became.
func (db *database) read(ctx context.Context) error {
	db.claim = prototype("example.org", "v1alpha1", "DatabaseClaim")
	if err := db.c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "my-database"}, db.claim); err != nil {
		return err
	}

	db.xr = prototype("example.org", "v1alpha1", "XDatabase")
	if err := db.c.Get(ctx, client.ObjectKey{Name: resource.String(db.claim.Object, "spec", "resourceRef", "name")}, db.xr); err != nil {
		return err
	}

	refs := resource.List(db.xr.Object, "spec", "resourceRefs")
	if len(refs) == 0 {
		return fmt.Errorf("the XR refers to nothing: %v: %w", resource.Map(db.xr.Object, "status")["conditions"], world.ErrOther)
	}

	ref, _ := refs[0].(map[string]any)
	db.managed = prototype("kubernetes.crossplane.io", "v1alpha2", "Object")

	return db.c.Get(ctx, client.ObjectKey{Name: resource.String(ref, "name")}, db.managed)
}

// resize has hans change the size.
func (db *database) resize(t *testing.T, size string) {
	t.Helper()

	// The API server may still have to learn where the webhook is.
	world.Eventually(t, "a resize to "+size, func(ctx context.Context) error {
		return db.hans.Patch(ctx, db.claim.DeepCopy(), world.Merge(`{"spec": {"size": "`+size+`"}}`))
	})
}

// outside is the size of the external object.
func (db *database) outside(ctx context.Context) (string, error) {
	cm := &corev1.ConfigMap{}
	err := db.c.Get(ctx, client.ObjectKey{Namespace: "default", Name: db.xr.GetName()}, cm)

	return cm.Data["size"], err
}

// gate is the state of the managed resource's gate.
func (db *database) gate() v1alpha1.GateState {
	rec, err := allowance.ParseGate(db.managed)
	if err != nil || rec == nil {
		return ""
	}

	return rec.State
}

// settles waits until a size has arrived outside and nothing is under way.
func (db *database) settles(t *testing.T, size string) {
	t.Helper()

	world.Eventually(t, "size "+size+" outside, and a closed gate", func(ctx context.Context) error {
		if err := db.read(ctx); err != nil {
			return err
		}

		for _, u := range []*unstructured.Unstructured{db.claim, db.xr, db.managed} {
			if got := strings.TrimSpace(resource.Annotation(u, v1alpha1.AnnotationAllowances)); got != "[]" {
				return fmt.Errorf("%s has allowances %q: %w", u.GetKind(), got, world.ErrOther)
			}
		}

		if got, err := db.outside(ctx); err != nil || got != size || db.gate() != v1alpha1.GateClosed {
			return fmt.Errorf("%q outside, gate %s: %w (%v)", got, db.gate(), world.ErrOther, err) //nolint:errorlint // Maybe none.
		}

		return nil
	})
}

// opens waits until the gate is open for a change, which a provider that does
// nothing does not apply, and XR and managed resource carry allowances. The Claim's
// has served once the XR is as it says.
func (db *database) opens(t *testing.T) {
	t.Helper()

	world.Eventually(t, "an open gate", db.open)
}

func (db *database) open(ctx context.Context) error {
	if err := db.read(ctx); err != nil {
		return err
	}

	for _, u := range []*unstructured.Unstructured{db.xr, db.managed} {
		if got := resource.Annotation(u, v1alpha1.AnnotationAllowances); !strings.Contains(got, "hans@example.com") {
			return fmt.Errorf("%s has allowances %q: %w", u.GetKind(), got, world.ErrOther)
		}
	}

	if db.gate() != v1alpha1.GateOpen {
		return fmt.Errorf("the gate is %s: %w", db.gate(), world.ErrOther)
	}

	return nil
}

// idle stops the provider of the managed resource, and returns what starts it.
func (db *database) idle(t *testing.T) func() {
	t.Helper()

	provider := running.Process("provider-kubernetes")
	if err := provider.Stop(); err != nil {
		t.Fatal(err)
	}

	return func() {
		if err := provider.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// unrefused checks that Kausality has refused and held nothing.
func (db *database) unrefused(t *testing.T) {
	t.Helper()

	list := &eventsv1.EventList{}
	if err := db.c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	for _, e := range list.Items {
		if e.Reason == "KausalityHeld" || e.Reason == "KausalityDenied" || strings.Contains(e.Note, "denied the request") {
			t.Errorf("Event %s of %s %s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
		}
	}
}

// guarded checks that nobody moves the gate or deletes the managed resource.
func (db *database) guarded(t *testing.T) {
	t.Helper()

	err := db.hans.Patch(t.Context(), db.managed.DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`), client.DryRunAll)
	if err == nil {
		t.Error("hans opened the gate by hand")
	}

	err = db.hans.Delete(t.Context(), db.managed.DeepCopy(), client.DryRunAll)
	if err == nil || apierrors.IsNotFound(err) {
		t.Errorf("hans deleted the managed resource: %v", err)
	}
}

// forProvider is what the provider is given, to compare it.
func (db *database) forProvider() any {
	value, _ := resource.Value(db.managed.Object, "spec", "forProvider")

	return value
}
