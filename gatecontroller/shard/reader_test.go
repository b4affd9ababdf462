// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestWhatWasStrippedIsReadLive(t *testing.T) {
	const text = "{apiVersion: example.org/v1, kind: Shop, metadata: {name: s, namespace: team}, spec: {size: large}}"

	part, err := New("small")
	if err != nil {
		t.Fatal(err)
	}

	stripped := fixture.Parse(t, text)
	part.Strip(stripped)

	if !Stripped(stripped) || Stripped(fixture.Parse(t, text)) {
		t.Fatal("an object of another shard is stripped")
	}

	scheme := runtime.NewScheme()
	r := Reader{
		Cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(stripped).Build(),
		Live:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(fixture.Parse(t, text)).Build(),
	}

	for name, tc := range map[string]struct {
		reason string
		all    bool
	}{
		"All":  {"All of it takes the API server.", true},
		"Some": {"What the cache has is enough for who asks for no more.", false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Shop"})

			if err := r.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "s"}, u, tc.all); err != nil {
				t.Fatal(err)
			}

			size, _, _ := unstructured.NestedString(u.Object, "spec", "size")
			if (size == "large") != tc.all {
				t.Errorf("%s\nsize %q", tc.reason, size)
			}
		})
	}
}

func TestNamespacesAreInTheShardOfTheirLabel(t *testing.T) {
	plain, large := Namespace(), Namespace()
	large.SetLabels(map[string]string{v1alpha1.LabelShard: "large"})

	p := LabelChanged()
	if p.Create(event.CreateEvent{Object: plain}) || !p.Create(event.CreateEvent{Object: large}) || p.Delete(event.DeleteEvent{Object: large}) ||
		p.Update(event.UpdateEvent{ObjectOld: large, ObjectNew: large}) || !p.Update(event.UpdateEvent{ObjectOld: large, ObjectNew: plain}) {
		t.Error("a label changes when a namespace is made with one, or gets another")
	}

	free := fixture.Parse(t, "{apiVersion: example.org/v1, kind: Yard, metadata: {name: y, finalizers: ["+v1alpha1.Finalizer+"], deletionTimestamp: '2026-01-01T00:00:00Z'}}")
	if Foreign(free) || !Foreign(fixture.Parse(t, "{apiVersion: example.org/v1, kind: Yard, metadata: {name: y}}")) {
		t.Error("what is in no namespace, goes and waits for us is released by whoever looks at it")
	}
}
