// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestMetadataIsWrittenOfTheVersionThatWasRead(t *testing.T) {
	const shop = "{apiVersion: example.org/v1, kind: Shop, metadata: {name: s, namespace: d, finalizers: [other], annotations: {a: '1'}}}"

	add := func(w Writer, u *unstructured.Unstructured) error { return w.AddFinalizer(context.Background(), u) }
	remove := func(w Writer, u *unstructured.Unstructured) error { return w.RemoveFinalizer(context.Background(), u) }
	annotate := func(w Writer, u *unstructured.Unstructured) error {
		return w.Annotate(context.Background(), u, map[string]string{"b": "2"})
	}

	cases := map[string]struct {
		reason      string
		do          []func(Writer, *unstructured.Unstructured) error
		stale       bool
		gone        bool
		refuse      error
		finalizers  []string
		annotations map[string]string
		conflict    bool
		err         error
	}{
		"Add":      {reason: "Ours comes to those of others.", do: []func(Writer, *unstructured.Unstructured) error{add}, finalizers: []string{"other", v1alpha1.Finalizer}, annotations: map[string]string{"a": "1"}},
		"Twice":    {reason: "It is there once.", do: []func(Writer, *unstructured.Unstructured) error{add, add}, finalizers: []string{"other", v1alpha1.Finalizer}, annotations: map[string]string{"a": "1"}},
		"Remove":   {reason: "Those of others stay.", do: []func(Writer, *unstructured.Unstructured) error{add, remove}, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
		"Annotate": {reason: "Other annotations stay.", do: []func(Writer, *unstructured.Unstructured) error{annotate}, finalizers: []string{"other"}, annotations: map[string]string{"a": "1", "b": "2"}},
		"Stale":    {reason: "What somebody changed since is not overwritten.", do: []func(Writer, *unstructured.Unstructured) error{add}, stale: true, conflict: true, finalizers: []string{"other"}, annotations: map[string]string{"a": "1", "somebody": "else"}},
		"Gone":     {reason: "What is gone waits for nobody.", do: []func(Writer, *unstructured.Unstructured) error{remove}, gone: true},
		"Refused":  {reason: "What is refused is an error.", do: []func(Writer, *unstructured.Unstructured) error{add}, refuse: fixture.ErrRefused, err: fixture.ErrRefused, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					if tc.refuse != nil {
						return tc.refuse
					}

					return c.Patch(ctx, obj, p, opts...)
				},
			})
			if !tc.gone {
				b = b.WithObjects(fixture.Parse(t, shop))
			}

			c := b.Build()
			read := func() *unstructured.Unstructured {
				u := New(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Shop"})
				u.SetName("s")
				u.SetNamespace("d")

				if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil && !tc.gone {
					t.Fatal(err)
				}

				return u
			}

			for _, do := range tc.do {
				u := read()

				if tc.stale {
					other := u.DeepCopy()
					other.SetAnnotations(map[string]string{"a": "1", "somebody": "else"})

					if err := c.Update(t.Context(), other); err != nil {
						t.Fatal(err)
					}
				}

				before := u.DeepCopy()
				err := do(Writer{Client: c}, u)

				if apierrors.IsConflict(err) != tc.conflict || !tc.conflict && !errors.Is(err, tc.err) {
					t.Fatalf("%s\nerror %v", tc.reason, err)
				}

				if diff := cmp.Diff(before, u); diff != "" {
					t.Errorf("%s\nwhat was read is modified:\n%s", tc.reason, diff)
				}
			}

			if tc.gone {
				return
			}

			u := read()
			if diff := cmp.Diff(tc.finalizers, u.GetFinalizers()); diff != "" {
				t.Errorf("%s\nfinalizers, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.annotations, u.GetAnnotations()); diff != "" {
				t.Errorf("%s\nannotations, -want, +got:\n%s", tc.reason, diff)
			}

			if HasFinalizer(u) != (len(tc.finalizers) > 1) {
				t.Errorf("%s\nHasFinalizer: %v", tc.reason, HasFinalizer(u))
			}
		})
	}
}

func TestAnObjectIsFoundInTheVersionThatIsServed(t *testing.T) {
	v2 := schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Shop"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v2.GroupVersion()})
	mapper.Add(v2, meta.RESTScopeNamespace)

	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(
		fixture.Parse(t, "{apiVersion: example.org/v2, kind: Shop, metadata: {name: s, namespace: d}}"),
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Version == "v1" {
				return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
			}

			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	ref := func(kind, name string) resource.Reference {
		return resource.Reference{APIVersion: "example.org/v1", Kind: kind, Namespace: "d", Name: name}
	}

	u, err := Find(t.Context(), c, mapper, ref("Shop", "s"))
	if err != nil || u.GetAPIVersion() != "example.org/v2" {
		t.Errorf("found %v, %v", u, err)
	}

	if _, err := Find(t.Context(), c, mapper, ref("Shop", "none")); !errors.Is(err, ErrGone) {
		t.Errorf("an object that is gone: %v", err)
	}

	if _, err := Find(t.Context(), c, mapper, ref("None", "s")); !errors.Is(err, ErrGone) {
		t.Errorf("a kind that is gone: %v", err)
	}

	if IsGone(fixture.ErrRefused) || !IsGone(apierrors.NewNotFound(schema.GroupResource{}, "x")) || !IsGone(&meta.NoKindMatchError{}) {
		t.Error("gone is what is not found, or has no kind")
	}
}
