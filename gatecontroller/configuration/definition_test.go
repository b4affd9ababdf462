// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestOurNamespaceIsAnOwnerOfWhatAPackageBrought(t *testing.T) {
	const name = "enforcements.kausality.io"

	revision := metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "p-1", UID: "r", Controller: new(true)}
	namespace := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "kausality-system", UID: "n"}
	gr := schema.GroupResource{Resource: "customresourcedefinitions"}
	conflict := apierrors.NewConflict(gr, name, nil)

	cases := map[string]struct {
		reason string
		owners []metav1.OwnerReference
		gone   bool
		patch  error
		want   []metav1.OwnerReference
		writes int
		late   bool
		err    error
	}{
		"Package":   {reason: "One of a package would go with it.", owners: []metav1.OwnerReference{revision}, want: []metav1.OwnerReference{revision, namespace}, writes: 1},
		"Owned":     {reason: "One that has the owner is not written.", owners: []metav1.OwnerReference{revision, namespace}, want: []metav1.OwnerReference{revision, namespace}},
		"Chart":     {reason: "One of a chart has no owner, and gets none.", want: nil},
		"Gone":      {reason: "One that is gone needs none.", gone: true},
		"Forbidden": {reason: "Some clusters do not let us: that is told, and not tried for ever.", owners: []metav1.OwnerReference{revision}, patch: apierrors.NewForbidden(gr, name, nil), want: []metav1.OwnerReference{revision}, writes: 1},
		"Conflict":  {reason: "A conflict is to be tried again silently.", owners: []metav1.OwnerReference{revision}, patch: conflict, want: []metav1.OwnerReference{revision}, writes: 1, err: conflict, late: true},
		"Refused":   {reason: "Anything else is an error.", owners: []metav1.OwnerReference{revision}, patch: fixture.ErrRefused, want: []metav1.OwnerReference{revision}, writes: 1, err: fixture.ErrRefused},
	}

	for label, tc := range cases {
		t.Run(label, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(scheme), extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
				t.Fatal(err)
			}

			crd := empty()
			crd.SetName(name)
			crd.SetOwnerReferences(tc.owners)

			writes := 0
			b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					writes++

					if tc.patch != nil {
						return tc.patch
					}

					return c.Patch(ctx, obj, p, opts...)
				},
			}).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kausality-system", UID: "n"}})

			if !tc.gone {
				b = b.WithObjects(&extv1.CustomResourceDefinition{ObjectMeta: crd.ObjectMeta})
			}

			c := b.Build()
			r := &DefinitionOwner{Client: c, Live: c, Namespace: "kausality-system"}

			if _, err := r.Controller(&informertest.FakeInformers{Scheme: scheme}, logr.Discard()); err != nil {
				t.Fatal(err)
			}

			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
			if !errors.Is(err, tc.err) || !got.IsZero() || object.Outdated(err) != tc.late || writes != tc.writes {
				t.Errorf("%s\n%v, %v, %d writes", tc.reason, got, err, writes)
			}

			if tc.gone {
				return
			}

			if err := c.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, crd.GetOwnerReferences()); diff != "" {
				t.Errorf("%s\nowners, -want, +got:\n%s", tc.reason, diff)
			}

			if !ours(crd) || ours(&corev1.Namespace{}) {
				t.Error("ours are the CRDs of our kinds")
			}
		})
	}
}
