// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package removal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestCrossplaneGoesOnWithoutKausality plays steps that build on each other.
func TestCrossplaneGoesOnWithoutKausality(t *testing.T) {
	c := newCluster(t)
	c.applyExample(t, "xrd.yaml", "composition.yaml", "policies.yaml")

	closed := c.leftClosed(t)
	c.comesBack(t, closed)
	open := c.leftOpen(t)

	// What is deleted is deleted outside, too. Both at once, for the
	// garbage collector searches for new kinds every half a minute only.
	c.end(t, closed, open)
	c.clean(t)
}

// leftOpen removes Kausality, and leaves databases open.
func (c *cluster) leftOpen(t *testing.T) database {
	t.Helper()

	d := c.database(t, "open")

	// 1. A Composition that runs the function would go on gating.
	if out, err := world.Uninstall(t.Context(), running, "--leave=open", "--dry-run=server"); err == nil ||
		!strings.Contains(out, `the pipeline of Composition "xdatabases.example.org" runs`) {
		t.Errorf("with the function in use: %v: %s", err, out)
	}

	c.ungate(t)
	c.refused(t, d)

	if err := c.halt(t, d, "--leave=open"); err != nil {
		t.Fatal(err)
	}

	// 2. The provider does what the Composition asks.
	world.Eventually(t, "an open gate", func(ctx context.Context) error { return d.policies(ctx, "*") })

	if err := d.resize(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a large database", func(ctx context.Context) error { return d.outside(ctx, "large") })
	c.clean(t)

	return d
}

// comesBack installs Kausality again, which takes over what there is.
func (c *cluster) comesBack(t *testing.T, d database) {
	t.Helper()

	if err := running.Manager().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.applyExample(t, "composition.yaml", "policies.yaml")
	world.Eventually(t, "a gate of what was there", func(ctx context.Context) error { return d.gated(ctx, "large") })
}

// leftClosed removes Kausality, leaves a database closed, and opens it at last.
func (c *cluster) leftClosed(t *testing.T) database {
	t.Helper()

	d := c.database(t, "closed")
	c.ungate(t)

	if err := c.halt(t, d, "--leave=closed"); err != nil {
		t.Fatal(err)
	}

	// 1. Crossplane goes on, and the provider only observes.
	if err := d.resize(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a managed resource that is to be large", func(ctx context.Context) error { return d.wanted(ctx, "large") })

	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := d.outside(t.Context(), "small"); err != nil {
			t.Fatal(err)
		}
	}

	if err := d.policies(t.Context(), "Observe"); err != nil {
		t.Error(err)
	}

	c.clean(t)

	// 2. Open, by the same command.
	if out, err := world.Uninstall(t.Context(), running, "--leave=open"); err != nil || !strings.Contains(out, "1 left open") {
		t.Fatalf("%v: %s", err, out)
	}

	world.Eventually(t, "a large database", func(ctx context.Context) error { return d.outside(ctx, "large") })
	c.clean(t)

	return d
}

// refused has somebody change a database outside, which an open gate would revert: that is listed, and nothing is removed.
func (c *cluster) refused(t *testing.T, d database) {
	t.Helper()

	change := func(size string) {
		u, err := d.external(t.Context())
		if err == nil {
			err = c.Patch(t.Context(), u, world.Merge(`{"data": {"size": "`+size+`"}}`))
		}

		if err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			out, err := world.Uninstall(ctx, running, "--leave=open", "--dry-run=server")
			if err != nil || strings.Contains(out, "held: Object ") != want {
				return fmt.Errorf("%w: %w: %s", err, world.ErrOther, out)
			}

			return nil
		}
	}

	change("huge")
	world.Eventually(t, "a list", listed(true))

	if out, err := world.Uninstall(t.Context(), running, "--leave=open"); err == nil ||
		!strings.Contains(out, "spec.forProvider.manifest.data.size is changed from huge to small") || !strings.Contains(out, "or take them with --release-held") {
		t.Errorf("%v: %s", err, out)
	}

	world.Eventually(t, "word of the doctor", func(ctx context.Context) error {
		out, err := play.Shell{Stack: running}.Command(ctx, play.Admin, "kubectl-kausality", "doctor").CombinedOutput()
		if !strings.Contains(string(out), "size is changed from huge to small once nobody holds it") {
			return fmt.Errorf("%w: %w: %s", err, world.ErrOther, out)
		}

		return nil
	})

	change("small")
	world.Eventually(t, "nothing held", listed(false))
}

// halt reads what would become of a database, stops the manager, and removes
// what it kept.
func (c *cluster) halt(t *testing.T, d database, leave string) error {
	t.Helper()

	before, err := d.managed(t.Context())
	if err != nil {
		return err
	}

	out, err := world.Uninstall(t.Context(), running, leave, "--dry-run=server")
	for _, want := range []string{
		"Object.kubernetes.crossplane.io " + before.GetName() + " would be " + strings.TrimPrefix(leave, "--leave="),
		"Lease kausality-system/kausality-webhook would go", "Secret kausality-system/kausality-webhook-cert would go",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("dry run: %v: want %q in %s", err, want, out)
		}
	}

	if err := running.Manager().Stop(); err != nil {
		return err
	}

	if out, err = world.Uninstall(t.Context(), running, leave); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	// The API server sees a moment later that a guard is gone. What it refuses to
	// Crossplane until then, that tries again a minute later.
	world.Eventually(t, "a change of a gate by hand", func(ctx context.Context) error {
		u, err := d.managed(ctx)
		if err != nil {
			return err
		}

		return c.Patch(ctx, u, world.Merge(`{"spec": {"managementPolicies": ["Observe", "Create"]}}`), client.DryRunAll)
	})

	return nil
}

// clean checks that nothing of Kausality's is left that matters to anybody, and
// that nothing waits to be deleted.
func (c *cluster) clean(t *testing.T) {
	t.Helper()

	world.CheckUnguarded(t, c)

	for _, gvk := range []schema.GroupVersionKind{
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, {Version: "v1", Kind: "Secret"},
	} {
		for _, u := range c.list(t, gvk) {
			if u.GetNamespace() == stack.KausalityNamespace {
				t.Errorf("%s %q is still there", gvk.Kind, u.GetName())
			}
		}
	}

	world.Eventually(t, "an end of all that is being deleted, and of finalizers", c.unkept)
}

// unkept checks all objects of the cluster.
func (c *cluster) unkept(ctx context.Context) error {
	disco, err := discovery.NewDiscoveryClientForConfig(running.Config())
	if err != nil {
		return err
	}

	lists, err := disco.ServerPreferredResources()
	if err != nil {
		return err
	}

	for _, l := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, r := range l.APIResources {
			gvk := schema.FromAPIVersionAndKind(l.GroupVersion, r.Kind)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)

			if err := c.List(ctx, list); apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				return err
			}

			for i := range list.Items {
				u := &list.Items[i]
				if u.GetDeletionTimestamp() != nil || slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) {
					return fmt.Errorf("%s %q: deleted %v, finalizers %v: %w", gvk.Kind, u.GetName(), u.GetDeletionTimestamp(), u.GetFinalizers(), world.ErrOther)
				}
			}
		}
	}

	return nil
}

func (c *cluster) list(t *testing.T, gvk schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	return list.Items
}
