// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"slices"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
)

// crd is one of a kind Bucket.
func crd(established extv1.ConditionStatus, served bool) *extv1.CustomResourceDefinition {
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "buckets.mr.example.org"},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: "mr.example.org", Names: extv1.CustomResourceDefinitionNames{Plural: "buckets", Kind: "Bucket"},
			Versions: []extv1.CustomResourceDefinitionVersion{{Name: "v1", Served: served, Storage: true}},
		},
		Status: extv1.CustomResourceDefinitionStatus{Conditions: []extv1.CustomResourceDefinitionCondition{
			{Type: extv1.Established, Status: established},
		}},
	}
}

func TestAKindThatIsNotListedIsGoneOnlyWhereItsDefinitionSaysSo(t *testing.T) {
	listed := []*metav1.APIResourceList{{GroupVersion: "mr.example.org/v1", APIResources: []metav1.APIResource{
		{Name: "buckets", Kind: "Bucket", Verbs: metav1.Verbs{"get", "update"}},
	}}}

	ending := []*metav1.APIResourceList{{GroupVersion: "mr.example.org/v1", APIResources: []metav1.APIResource{
		{Name: "buckets", Kind: "Bucket", Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}},
		{Name: "views", Kind: "View", Verbs: metav1.Verbs{"get", "list"}},
	}}}

	cases := map[string]struct {
		reason string
		crd    *extv1.CustomResourceDefinition
		lists  []*metav1.APIResourceList
		kinds  int
	}{
		"Listed":         {reason: "It is there.", crd: crd(extv1.ConditionTrue, true), lists: listed, kinds: 1},
		"Behind":         {reason: "An API server that starts lists CRDs before what they define.", crd: crd(extv1.ConditionTrue, true), kinds: 1},
		"NotEstablished": {reason: "A definition that is not in force defines nothing yet.", crd: crd(extv1.ConditionFalse, true)},
		"Ending":         {reason: "While its definition is being deleted its objects wait for us.", crd: crd(extv1.ConditionTrue, true), lists: ending, kinds: 1},
		"NotServed":      {reason: "Nor one that serves no version.", crd: crd(extv1.ConditionTrue, false)},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
				t.Fatal(err)
			}

			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.crd).Build()
			r := &Resolver{Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: tc.lists}}, Crds: c, Live: c}

			got, err := r.Served(t.Context())
			if err != nil || len(got) != tc.kinds {
				t.Errorf("%s\nserved: %v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestAKindIsScaledInWhateverVersion has it scaled by a version that its group does
// not prefer, and the webhook asked about that.
func TestAKindIsScaledInWhateverVersion(t *testing.T) {
	verbs := metav1.Verbs{"get", "update"}
	list := func(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: "mr.example.org/" + version, APIResources: resources}
	}

	old := crd(extv1.ConditionTrue, true)
	old.Spec.Versions = append(old.Spec.Versions, extv1.CustomResourceDefinitionVersion{
		Name: "v1beta1", Served: true,
		Subresources: &extv1.CustomResourceSubresources{Scale: &extv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas"}},
	})

	for name, lists := range map[string][]*metav1.APIResourceList{
		"Listed": {
			list("v1", metav1.APIResource{Name: "buckets", Kind: "Bucket", Verbs: verbs}),
			list("v1beta1", metav1.APIResource{Name: "buckets", Kind: "Bucket", Verbs: verbs},
				metav1.APIResource{Name: "buckets/scale", Kind: "Scale", Group: "autoscaling", Verbs: verbs}),
		},
		"Unlisted": nil,
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
				t.Fatal(err)
			}

			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old.DeepCopy()).Build()
			r := &Resolver{Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}, Crds: c, Live: c}

			got, err := r.Served(t.Context())
			if err != nil || len(got) != 1 || got[0].GVK.Version != "v1" || !got[0].Scales {
				t.Fatalf("served: %+v, %v", got, err)
			}

			hooks, _, err := admission.Options{}.Configurations([]admission.GovernedKind{{Served: got[0]}}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}

			var rules []string
			for _, w := range hooks.Webhooks {
				for _, rule := range w.Rules {
					rules = append(rules, rule.Resources...)
				}
			}

			if !slices.Contains(rules, "buckets/scale") {
				t.Errorf("the webhook is asked about %v", rules)
			}
		})
	}
}

// TestAVersionWithoutManagementPoliciesIsKnown, of a managed resource's kind that has another one with them.
func TestAVersionWithoutManagementPoliciesIsKnown(t *testing.T) {
	schemaOf := func(fields ...string) *extv1.CustomResourceValidation {
		spec := extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{}}
		for _, field := range fields {
			spec.Properties[field] = extv1.JSONSchemaProps{}
		}

		return &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"spec": spec}}}
	}

	bucket := crd(extv1.ConditionTrue, true)
	bucket.Spec.Versions[0].Schema = schemaOf("forProvider", "providerConfigRef", "managementPolicies")
	bucket.Spec.Versions = append(bucket.Spec.Versions,
		extv1.CustomResourceDefinitionVersion{Name: "v1beta1", Served: true, Schema: schemaOf("forProvider", "providerConfigRef")},
		extv1.CustomResourceDefinitionVersion{Name: "v1alpha1", Schema: schemaOf("forProvider", "providerConfigRef")},
		extv1.CustomResourceDefinitionVersion{Name: "v1beta2", Served: true, Schema: bucket.Spec.Versions[0].Schema},
	)

	scheme := runtime.NewScheme()
	if err := errors.Join(extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket).Build()
	r := &Resolver{Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}, Crds: c, Live: c, Described: map[string]Shape{}}

	got, err := r.Served(t.Context())
	if err == nil {
		err = r.Describe(t.Context(), got)
	}

	if err != nil || len(got) != 1 || !got[0].Managed || got[0].Without != "v1beta1" {
		t.Errorf("described: %+v, %v", got, err)
	}
}
