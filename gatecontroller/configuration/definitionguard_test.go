// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestOurDefinitionsAreGuardedWhereverConfigurationsAreKept(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	definitions := []string{
		v1alpha1.NameApprovalGuard, v1alpha1.NameBindGuard, "kausality-crd-allowancepolicies", "kausality-crd-enforcements", "kausality-crd-upgradeallowances",
		v1alpha1.NameHeldGuard, v1alpha1.NameParameterGuard, v1alpha1.NamePendingGuard,
	}
	all := slices.Sorted(slices.Values(slices.Concat(definitions, []string{v1alpha1.NameDeleteGuard, v1alpha1.NameWriterGuard, v1alpha1.NameUsageGuard})))

	for name, tc := range map[string]struct {
		reason string
		gates  bool
		want   []string
	}{
		"Gates":   {reason: "Gates have guards, too.", gates: true, want: all},
		"NoGates": {reason: "Policies and Enforcements matter without gates.", want: definitions},
	} {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithScheme(scheme).Build()
			usage := kind.Served{GVK: schema.GroupVersionKind{Group: "aws.upbound.io", Version: "v1beta1", Kind: "ProviderConfigUsage"}, Resource: "providerconfigusages"}
			c := &Reconciler{Applier: &Applier{Client: live}}
			p := planFor(observed{gates: tc.gates, gated: fixture.ServedKinds(), usages: []kind.Served{usage}}, c.Applier.Hooks)

			if _, err := c.applyGuards(t.Context(), p); err != nil {
				t.Fatal(err)
			}

			list := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
			if err := live.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}

			got := make([]string, 0, len(tc.want))
			for i := range list.Items {
				got = append(got, list.Items[i].GetName())
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nBindings, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
