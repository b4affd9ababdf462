// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestNamespacesAreSharedOutByLabel has one manager reconcile the namespaces of
// a shard and the other after all else, and moves namespaces between them.
func TestNamespacesAreSharedOutByLabel(t *testing.T) {
	world.Long(t)

	w := world.New(t, running)
	rest := running.Manager()

	shard, err := running.StartManager(t.Context(), "kausality-manager-a", "--shard=a")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = shard.Stop() })

	// 1. Each leads by itself: it has a lease of its own.
	world.Eventually(t, "the leader of the rest", leads(rest, lease, 1))
	world.Eventually(t, "the leader of the shard", leads(shard, lease+"-a", 1))

	mine := w.Namespace(t, "shard-a", map[string]string{v1alpha1.LabelShard: "a"})
	free := w.Namespace(t, "shard-none", nil)
	w.Namespace(t, "shard-b", map[string]string{v1alpha1.LabelShard: "b"})

	in, out, region := w.Database(t, mine.GetName(), "in"), w.Database(t, free.GetName(), "out"), w.Database(t, "", "region")
	all := []*unstructured.Unstructured{in, out, region}

	// 2. A shard that nobody runs is left alone, and that is reported.
	left := w.Made(t, "shard-b", "left")
	world.Eventually(t, "a shard that no manager runs for", counts(rest, "kausality_shard_unattended{shard=b}", 1))

	resizeAll(t, w, "large", all)
	world.Eventually(t, "closed gates", w.Closed("large", all...))

	if rec, _, err := w.Record(t.Context(), left); err == nil {
		t.Errorf("somebody moved the gate of a shard that nobody runs: %+v", rec)
	}

	whose(t, shard, in)
	whose(t, rest, out, region)

	if err := counts(rest, "kausality_shard_unattended{shard=a}", 0)(t.Context()); err != nil {
		t.Error(err)
	}

	// 3. Both namespaces change sides while gates are open.
	w.Rest(true)
	resizeAll(t, w, "huge", all)
	world.Eventually(t, "open gates", w.Open(all...))
	world.Eventually(t, "the rest's open gates", gatesOpen(rest, 1))
	world.Eventually(t, "the shard's open gates", gatesOpen(shard, 1))
	world.Eventually(t, "what both tell", both(tells(t, rest, "Open", out, region), tells(t, shard, "Open", in)))

	was := map[*stack.Manager]int{shard: len(moves(t, shard)), rest: len(moves(t, rest))}

	label(t, w, free, "a")
	world.Eventually(t, "both with the shard", both(gatesOpen(rest, 0), gatesOpen(shard, 2)))
	label(t, w, mine, "")
	world.Eventually(t, "one with the rest", both(gatesOpen(rest, 1), gatesOpen(shard, 1)))

	w.Rest(false)
	world.Eventually(t, "closed gates", w.Closed("huge", all...))
	world.Eventually(t, "what both tell", both(tells(t, rest, "Close", in, region), tells(t, shard, "Close", out)))

	if got := moves(t, shard)[was[shard]:]; !slices.Equal(got, []string{"shard-none/out Close"}) {
		t.Errorf("the shard: %v", got)
	}

	got := moves(t, rest)[was[rest]:]
	slices.Sort(got)

	if !slices.Equal(got, []string{"/region Close", "shard-a/in Close"}) {
		t.Errorf("the rest: %v", got)
	}

	// 4. Only the rest has policies.
	if text, err := scrape(t.Context(), shard); err != nil || len(text.like("kausality_webhook")) > 0 {
		t.Errorf("the shard serves a webhook: %v, %v", text.like("kausality_webhook"), err)
	}
}

// TestAParentInNoNamespaceIsKeptByTheShardOfItsChildren has a cluster-scoped
// object, of a kind that the manager of such objects has no reason to read,
// own a database in a shard.
func TestAParentInNoNamespaceIsKeptByTheShardOfItsChildren(t *testing.T) {
	world.Long(t)

	w := world.New(t, running)

	shard, err := running.StartManager(t.Context(), "kausality-manager-c", "--shard=c")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = shard.Stop() })

	w.Namespace(t, "shard-c", map[string]string{v1alpha1.LabelShard: "c"})
	db := w.Database(t, "shard-c", "owned")

	estate := world.Prototype(world.Kind("Estate"))
	estate.SetName("estate")

	if err := w.Create(t.Context(), estate); err != nil {
		t.Fatal(err)
	}

	owner := fmt.Sprintf(`[{"apiVersion": "sql.example.org/v1", "kind": "Estate", "name": "estate", "uid": %q, "controller": true}]`, estate.GetUID())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"ownerReferences": `+owner+`}}`))

	if err := w.Patch(t.Context(), db.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}

	kept := func(ctx context.Context) error {
		live := world.Prototype(estate.GroupVersionKind())
		if err := w.Get(ctx, client.ObjectKeyFromObject(estate), live); err != nil {
			return err
		}

		if !slices.Contains(live.GetFinalizers(), v1alpha1.Finalizer) {
			return fmt.Errorf("its finalizers are %v: %w", live.GetFinalizers(), world.ErrOther)
		}

		return nil
	}

	world.Eventually(t, "an estate that is kept", kept)

	if err := w.Delete(t.Context(), estate); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "an estate that is gone", func(ctx context.Context) error {
		if err := kept(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})

	// Nobody allowed what it stands for to go.
	if err := w.Closed("small", db)(t.Context()); err != nil {
		t.Error(err)
	}
}

// whose checks that of all managers only one moved the gates of some resources.
func whose(t *testing.T, m *stack.Manager, list ...*unstructured.Unstructured) {
	t.Helper()

	for _, u := range list {
		for _, p := range []string{"kausality-manager", "kausality-manager-a"} {
			moved := slices.ContainsFunc(moves(t, &stack.Manager{Process: running.Process(p)}), func(move string) bool {
				return strings.HasPrefix(move, u.GetNamespace()+"/"+u.GetName()+" ")
			})

			if moved != (p == m.Name()) {
				t.Errorf("%s moved the gate of %s/%s: %v", p, u.GetNamespace(), u.GetName(), moved)
			}
		}
	}
}

func both(checks ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, ok := range checks {
			if err := ok(ctx); err != nil {
				return err
			}
		}

		return nil
	}
}

// label moves a namespace to a shard; to none for an empty one.
func label(t *testing.T, w *world.World, ns *corev1.Namespace, shard string) {
	t.Helper()

	value := fmt.Sprintf("%q", shard)
	if shard == "" {
		value = "null"
	}

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+v1alpha1.LabelShard+`": `+value+`}}}`))
	if err := w.Patch(t.Context(), ns, patch); err != nil {
		t.Fatal(err)
	}
}
