// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestPoliciesAndWindowsAreLabelledByWhatFunctionsAskFor(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "allowancepolicies"}, "x", nil)

	cases := map[string]struct {
		reason string
		object string
		window bool
		patch  error
		want   map[string]string
		writes int
		late   bool
		err    error
	}{
		"Policy":   {reason: "By its kind.", object: `{metadata: {name: x}, spec: {match: {kind: Shop, fields: [spec]}, allow: []}}`, want: map[string]string{v1alpha1.LabelKind: "Shop", v1alpha1.LabelKindPrefix + "Shop": ""}, writes: 1},
		"Labelled": {reason: "One that has its label is not written.", object: `{metadata: {name: x, labels: {kausality.io/kind: Shop, kind.kausality.io/Shop: ""}}, spec: {match: {kind: Shop, fields: [spec]}, allow: []}}`, want: map[string]string{v1alpha1.LabelKind: "Shop", v1alpha1.LabelKindPrefix + "Shop": ""}},
		"Other":    {reason: "A wrong label is put right, and those of others stay.", object: `{metadata: {name: x, labels: {kausality.io/kind: Old, team: a}}, spec: {match: {kind: Shop, fields: [spec]}, allow: []}}`, want: map[string]string{v1alpha1.LabelKind: "Shop", v1alpha1.LabelKindPrefix + "Shop": "", "team": "a"}, writes: 1},
		"Kinds":    {reason: "One of several kinds by each, and by no other.", object: `{metadata: {name: x, labels: {kausality.io/kind: Old, kind.kausality.io/Old: "", team: a}}, spec: {match: {kinds: [Shop, Mall], fields: [spec]}, allow: []}}`, want: map[string]string{v1alpha1.LabelKindPrefix + "Shop": "", v1alpha1.LabelKindPrefix + "Mall": "", "team": "a"}, writes: 1},
		"Window":   {reason: "A window by its service account.", window: true, object: `{metadata: {name: x}, spec: {serviceAccount: "system:serviceaccount:a:b"}}`, want: map[string]string{v1alpha1.LabelServiceAccount: "a.b"}, writes: 1},
		"Conflict": {reason: "A conflict is to be tried again silently.", object: `{metadata: {name: x}, spec: {match: {kind: Shop, fields: [spec]}, allow: []}}`, patch: conflict, writes: 1, err: conflict, late: true},
		"Refused":  {reason: "What is refused is an error.", object: `{metadata: {name: x}, spec: {match: {kind: Shop, fields: [spec]}, allow: []}}`, patch: fixture.ErrRefused, writes: 1, err: fixture.ErrRefused},
		"Gone":     {reason: "One that is gone needs none."},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}

			var obj client.Object

			b := fake.NewClientBuilder().WithScheme(scheme)

			switch {
			case tc.window:
				obj = &fixture.Documents[v1alpha1.UpgradeAllowance](t, tc.object)[0]
				b = b.WithObjects(obj)
			case tc.object != "":
				obj = &fixture.Documents[v1alpha1.AllowancePolicy](t, tc.object)[0]
				b = b.WithObjects(obj)
			}

			writes := 0
			c := b.WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					writes++

					if tc.patch != nil {
						return tc.patch
					}

					return c.Patch(ctx, obj, p, opts...)
				},
			}).Build()

			r := LabelPolicies(c)
			if tc.window {
				r = LabelWindows(c)
			}

			if _, err := r.Controller(&informertest.FakeInformers{Scheme: scheme}, logr.Discard()); err != nil {
				t.Fatal(err)
			}

			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "x"}})
			if !errors.Is(err, tc.err) || !got.IsZero() || object.Outdated(err) != tc.late || writes != tc.writes {
				t.Errorf("%s\n%v, %v, %d writes", tc.reason, got, err, writes)
			}

			if obj == nil || tc.patch != nil {
				return
			}

			if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, obj.GetLabels()); diff != "" {
				t.Errorf("%s\nlabels, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
