// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

func shardOf(t *testing.T, name string) *Shard {
	t.Helper()

	s, err := New(name)
	if err != nil {
		t.Fatal(err)
	}

	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)

	for name, label := range map[string]string{"in-a": "a", "in-b": "b", "free": ""} {
		ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if label != "" {
			ns.Labels = map[string]string{v1alpha1.LabelShard: label}
		}

		if err := store.Add(ns); err != nil {
			t.Fatal(err)
		}
	}

	s.namespaces.Store(&store)

	return s
}

func TestEveryNamespaceIsInOneShard(t *testing.T) {
	a, b, rest := shardOf(t, "a"), shardOf(t, "b"), shardOf(t, "")

	for namespace, want := range map[string][3]bool{
		"in-a": {true, false, false}, "in-b": {false, true, false}, "free": {false, false, true},
		"": {false, false, true}, "unknown": {false, false, false},
	} {
		if got := [3]bool{a.Has(namespace), b.Has(namespace), rest.Has(namespace)}; got != want {
			t.Errorf("%q is in a, b, the rest: %v, want %v", namespace, got, want)
		}
	}

	if !a.Asked("unknown") || a.Asked("unknown") || a.Asked("free") {
		t.Error("what was not known is looked at again once it is")
	}

	for _, bad := range []string{"A", "a_b", "a.b", "-"} {
		if _, err := New(bad); err == nil {
			t.Errorf("shard %q was taken, which cannot be the name of a lease", bad)
		}
	}
}

func TestOfOtherShardsObjectsOnlyThatTheyAreThereIsKept(t *testing.T) {
	object := func(namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "g/v1", "kind": "K",
			"metadata": map[string]any{
				"namespace": namespace, "name": "db", "uid": "1", "resourceVersion": "7", "generation": int64(3),
				"ownerReferences": []any{map[string]any{"apiVersion": "g/v1", "kind": "P", "name": "p", "uid": "2", "controller": true}},
				"annotations":     map[string]any{"a": "b"}, "finalizers": []any{v1alpha1.Finalizer}, "deletionTimestamp": "2026-01-01T00:00:00Z",
			},
			"spec": map[string]any{"forProvider": map[string]any{"size": "large"}}, "status": map[string]any{},
		}}
	}

	a := shardOf(t, "a")
	mine, other := object("in-a"), object("free")
	a.Strip(mine)
	a.Strip(other)

	if diff := cmp.Diff(object("in-a"), mine); diff != "" || Stripped(mine) {
		t.Errorf("of its own shard, -want, +got:\n%s", diff)
	}

	want := map[string]any{
		"apiVersion": "g/v1", "kind": "K", keyStripped: true,
		"metadata": map[string]any{
			"namespace": "free", "name": "db", "uid": "1", "resourceVersion": "7",
			"ownerReferences": []any{map[string]any{"apiVersion": "", "kind": "", "name": "", "uid": "2", "controller": true}},
			"finalizers":      []any{v1alpha1.Finalizer}, "deletionTimestamp": "2026-01-01T00:00:00Z",
		},
	}
	if diff := cmp.Diff(want, other.Object); diff != "" || !Stripped(other) {
		t.Errorf("of another shard, -want, +got:\n%s", diff)
	}
}

func TestOfAnXROfAnotherShardItIsKeptWhoseItIs(t *testing.T) {
	claim := map[string]any{"apiVersion": "g/v1", "kind": "C", "namespace": "in-a", "name": "c"}
	object := func(namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"namespace": namespace, "name": "x"},
			"spec": map[string]any{"claimRef": claim, "size": "large"},
		}}
	}

	a := shardOf(t, "a")

	for namespace, want := range map[string]map[string]any{"": {"claimRef": claim}, "free": nil} {
		u := object(namespace)
		a.Strip(u)

		spec, _ := u.Object["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec); diff != "" || !Stripped(u) {
			t.Errorf("in namespace %q, -want, +got:\n%s", namespace, diff)
		}
	}
}
