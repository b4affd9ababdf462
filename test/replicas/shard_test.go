// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

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
)

// TestNamespacesAreSharedOutByLabel has one manager look after the namespaces of
// a shard and the other after all else, and moves namespaces between them.
func TestNamespacesAreSharedOutByLabel(t *testing.T) { //nolint:paralleltest // Another test kills the manager.
	w := newWorld(t)
	rest := running.Manager()

	shard, err := running.StartManager(t.Context(), "kausality-manager-a", "--shard=a")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = shard.Stop() })

	// 1. Each leads by itself: it has a lease of its own.
	eventually(t, "the leader of the rest", leads(rest, lease, 1))
	eventually(t, "the leader of the shard", leads(shard, lease+"-a", 1))

	mine := w.namespace(t, "shard-a", map[string]string{v1alpha1.LabelShard: "a"})
	free := w.namespace(t, "shard-none", nil)
	w.namespace(t, "shard-b", map[string]string{v1alpha1.LabelShard: "b"})

	in, out, region := w.database(t, mine.GetName(), "in"), w.database(t, free.GetName(), "out"), w.database(t, "", "region")
	all := []*unstructured.Unstructured{in, out, region}

	// 2. A shard that nobody runs is left alone, and that is told.
	left := w.made(t, "shard-b", "left")
	eventually(t, "a shard that nobody looks after", counts(rest, "kausality_shard_unattended{shard=b}", 1))

	w.resizeAll(t, "large", all)
	eventually(t, "closed gates", w.closed("large", all...))

	if rec, _, err := w.record(t.Context(), left); err == nil {
		t.Errorf("somebody moved the gate of a shard that nobody runs: %+v", rec)
	}

	whose(t, shard, in)
	whose(t, rest, out, region)

	if err := counts(rest, "kausality_shard_unattended{shard=a}", 0)(t.Context()); err != nil {
		t.Error(err)
	}

	// 3. Both namespaces change sides while gates are open.
	w.idle.Store(true)
	w.resizeAll(t, "huge", all)
	eventually(t, "open gates", w.open(all...))
	eventually(t, "the rest's open gates", gatesOpen(rest, 1))
	eventually(t, "the shard's open gates", gatesOpen(shard, 1))

	was := map[*stack.Manager]int{shard: len(moves(t, shard)), rest: len(moves(t, rest))}

	w.label(t, free, "a")
	eventually(t, "both with the shard", both(gatesOpen(rest, 0), gatesOpen(shard, 2)))
	w.label(t, mine, "")
	eventually(t, "one with the rest", both(gatesOpen(rest, 1), gatesOpen(shard, 1)))

	w.idle.Store(false)
	eventually(t, "closed gates", w.closed("huge", all...))

	if got := moves(t, shard)[was[shard]:]; !slices.Equal(got, []string{"shard-none/out Close"}) {
		t.Errorf("the shard: %v", got)
	}

	got := moves(t, rest)[was[rest]:]
	slices.Sort(got)

	if !slices.Equal(got, []string{"/region Close", "shard-a/in Close"}) {
		t.Errorf("the rest: %v", got)
	}

	// 4. Only the rest tells of policies.
	if text, err := scrape(t.Context(), shard); err != nil || len(text.like("kausality_webhook")) > 0 {
		t.Errorf("the shard serves a webhook: %v, %v", text.like("kausality_webhook"), err)
	}
}

// TestAParentInNoNamespaceIsKeptByTheShardOfItsChildren has a cluster-scoped
// object, of a kind that the manager of such objects has no reason to look at,
// own a database in a shard.
func TestAParentInNoNamespaceIsKeptByTheShardOfItsChildren(t *testing.T) { //nolint:paralleltest // Another test kills the manager.
	w := newWorld(t)

	shard, err := running.StartManager(t.Context(), "kausality-manager-c", "--shard=c")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = shard.Stop() })

	w.namespace(t, "shard-c", map[string]string{v1alpha1.LabelShard: "c"})
	db := w.database(t, "shard-c", "owned")

	estate := prototype(kind("Estate"))
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
		live := prototype(estate.GroupVersionKind())
		if err := w.Get(ctx, client.ObjectKeyFromObject(estate), live); err != nil {
			return err
		}

		if !slices.Contains(live.GetFinalizers(), v1alpha1.Finalizer) {
			return fmt.Errorf("its finalizers are %v: %w", live.GetFinalizers(), errOther)
		}

		return nil
	}

	eventually(t, "an estate that is kept", kept)

	if err := w.Delete(t.Context(), estate); err != nil {
		t.Fatal(err)
	}

	eventually(t, "an estate that is gone", func(ctx context.Context) error {
		if err := kept(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", errors.Join(err, errOther))
		}

		return nil
	})

	// Nobody allowed what it stands for to go.
	if err := w.closed("small", db)(t.Context()); err != nil {
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
func (w *world) label(t *testing.T, ns *corev1.Namespace, shard string) {
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
