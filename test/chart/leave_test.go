// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package chart_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// uninstall runs the command that removes Kausality from where the release is.
func uninstall(ctx context.Context, args ...string) (string, error) {
	return world.Uninstall(ctx, running, append(args, "--kausality-namespace", home)...)
}

// leaves removes the release, and what the manager kept.
func (l *life) leaves(t *testing.T) {
	t.Helper()

	// 1. What somebody asks for and nothing allows is held.
	u := l.list[1]
	if err := l.Hans.Patch(t.Context(), u.DeepCopy(), world.Merge(`{"spec": {"forProvider": {"color": "blue"}}}`)); err != nil {
		t.Fatal(err)
	}

	if live := l.live(t, u); resource.Annotation(live, v1alpha1.AnnotationHeld) == "" ||
		!slices.Contains(live.GetFinalizers(), v1alpha1.Finalizer) {
		t.Fatalf("metadata: %v", live.Object["metadata"])
	}

	alone := l.alone(t)

	// 2. Under a manager that runs nothing can be removed.
	if out, err := uninstall(t.Context(), "--leave=open"); err == nil || !strings.Contains(out, "it would put everything back") ||
		!strings.Contains(out, "nothing was changed") {
		t.Errorf("under a manager that runs: %v: %s", err, out)
	}

	l.release.remove(t)

	// 3. A dry run changes nothing.
	before := l.live(t, u)

	if out, err := uninstall(t.Context(), "--leave=open", "--dry-run=server"); err != nil ||
		!strings.Contains(out, "Database.sql.example.org shop/db-1 would be open, managementPolicies [*]") ||
		l.live(t, u).GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("dry run: %v: %s", err, out)
	}

	// What is held would happen: that takes a flag.
	if out, err := uninstall(t.Context(), "--leave=closed"); err == nil || !strings.Contains(out, "held: Database shop/db-0: spec.forProvider.color") ||
		!strings.Contains(out, "or take them with --release-held") || l.live(t, u).GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("what is held: %v: %s", err, out)
	}

	// 4. Closed: nobody looks after the gates any more, and they are closed.
	out, err := uninstall(t.Context(), "--leave=closed", "--release-held")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	if live := l.live(t, alone); !strings.Contains(out, "shop/alone is closed, by itself") || len(live.GetOwnerReferences()) > 0 {
		t.Errorf("what has no owner: %v: %s", live.Object["metadata"], out)
	}

	l.left(t, "Observe")
	l.unguarded(t)
	l.unheld(t, out)

	// 5. Open, at last.
	if out, err := uninstall(t.Context(), "--leave=open", "--remove-annotations", "--release-held"); err != nil ||
		!strings.Contains(out, "5 left open, 0 closed, 1 closed and by themselves") {
		t.Fatalf("%v: %s", err, out)
	}

	l.left(t, "*")

	if got := resource.Strings(l.live(t, alone).Object, "spec", "managementPolicies"); slices.Contains(got, "*") {
		t.Errorf("what has no owner was opened: %v", got)
	}

	live := l.live(t, u)
	for key := range live.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			t.Errorf("annotation %s is still there", key)
		}
	}

	if got := resource.Map(live.Object, "spec", "forProvider"); got["color"] != nil || got["size"] != "huge" {
		t.Errorf("forProvider: %v", got)
	}

	// 6. The kinds go as well, guarded or not.
	if out, err := uninstall(t.Context(), "--leave=open", "--remove-crds", "--release-held"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	world.Eventually(t, "the end of our kinds", func(ctx context.Context) error {
		err := served(l, "AllowancePolicy")(ctx)
		if err == nil {
			err = world.ErrOther
		} else if apierrors.IsNotFound(err) {
			err = nil
		}

		return err
	})
}

// alone makes a managed resource whose owner is gone, which nothing may delete.
func (l *life) alone(t *testing.T) *unstructured.Unstructured {
	t.Helper()

	u := l.Database(t, "shop", "alone")

	patch := world.Merge(`{"metadata": {"ownerReferences": [{"apiVersion": "sql.example.org/v1", "kind": "Estate", "name": "gone", "uid": "gone", "controller": true}]}}`)
	if err := l.Patch(t.Context(), u.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}

	return u
}

func (l *life) live(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()

	out := world.Prototype(u.GroupVersionKind())
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(u), out); err != nil {
		t.Fatal(err)
	}

	return out
}

// left checks the management policies of all that there is, and that nothing
// keeps it.
func (l *life) left(t *testing.T, want ...string) {
	t.Helper()

	for _, u := range l.list {
		live := l.live(t, u)

		if got := resource.Strings(live.Object, "spec", "managementPolicies"); !slices.Equal(got, want) {
			t.Errorf("management policies of %s: %v, want %v", u.GetName(), got, want)
		}

		if got := live.GetFinalizers(); slices.Contains(got, v1alpha1.Finalizer) {
			t.Errorf("finalizers of %s: %v", u.GetName(), got)
		}
	}
}

// unheld checks that the manager's Leases are gone, as was said, and that the
// Secret with certificates that somebody else made is not.
func (l *life) unheld(t *testing.T, out string) {
	t.Helper()

	for _, name := range []string{"kausality-manager", "kausality-webhook"} {
		err := l.Get(t.Context(), client.ObjectKey{Namespace: home, Name: name}, &coordinationv1.Lease{})
		if !apierrors.IsNotFound(err) || !strings.Contains(out, "Lease "+home+"/"+name+" is gone") {
			t.Errorf("lease %s: %v: %s", name, err, out)
		}
	}

	if err := l.Get(t.Context(), client.ObjectKey{Namespace: home, Name: secretName}, &corev1.Secret{}); err != nil {
		t.Errorf("somebody else's certificate: %v", err)
	}
}

// unguarded checks that the API server asks nobody any more.
func (l *life) unguarded(t *testing.T) {
	t.Helper()

	world.CheckUnguarded(t, l)

	world.Eventually(t, "a change of a gate by hand", func(ctx context.Context) error {
		err := l.Hans.Patch(ctx, l.list[0].DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["Observe", "LateInitialize", "Create"]}}`), client.DryRunAll)
		if err != nil {
			return fmt.Errorf("it is still refused: %w", err)
		}

		return nil
	})
}
