// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// define makes a CRD of a kind whose objects have some fields beside metadata.
func define(group, plural string, spec bool, fields ...string) client.Object {
	props := map[string]extv1.JSONSchemaProps{}
	for _, f := range fields {
		props[f] = extv1.JSONSchemaProps{Type: "object"}
	}

	if spec {
		props = map[string]extv1.JSONSchemaProps{"spec": {Type: "object", Properties: props}}
	}

	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, UID: types.UID(plural)},
		Spec: extv1.CustomResourceDefinitionSpec{Group: group, Versions: []extv1.CustomResourceDefinitionVersion{{
			Name: "v1beta1", Served: true, Storage: true,
			Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", Properties: props}},
		}}},
	}
}

func TestWhatShowsAProviderConfigsUseIsFoundWhereverItIs(t *testing.T) {
	t.Parallel()

	scheme := runtime.NewScheme()
	if err := errors.Join(extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	verbs, provider := metav1.Verbs{"get", "update"}, []string{"crossplane", "provider", "aws"}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "s3.aws.m.upbound.io/v1beta1", APIResources: []metav1.APIResource{
			{Name: "buckets", Kind: "Bucket", Verbs: verbs, Categories: []string{"crossplane", "managed", "aws"}},
		}},
		{GroupVersion: "aws.m.upbound.io/v1beta1", APIResources: []metav1.APIResource{
			{Name: "providerconfigs", Kind: "ProviderConfig", Verbs: verbs, Categories: provider},
			{Name: "providerconfigusages", Kind: "ProviderConfigUsage", Verbs: verbs, Categories: provider},
		}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		define("s3.aws.m.upbound.io", "buckets", true, "forProvider", "managementPolicies", "providerConfigRef"),
		define("aws.m.upbound.io", "providerconfigs", true, "credentials"),
		define("aws.m.upbound.io", "providerconfigusages", false, "providerConfigRef", "resourceRef"),
	).Build()
	r := &Resolver{
		Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}, Crds: c, Live: c,
		Described: map[string]Shape{},
	}

	served, err := r.Served(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	usages, err := r.Usages(t.Context(), served)
	if err != nil {
		t.Fatal(err)
	}

	bucket := kind.Served{GVK: schema.GroupVersionKind{Group: "s3.aws.m.upbound.io", Kind: "Bucket"}, Resource: "buckets", Managed: true}
	got := admission.Options{}.Guards([]kind.Served{bucket}, usages)[2].Policy.Spec

	list := make([]admissionregistrationv1.RuleWithOperations, 0, 1)
	for _, rule := range got.MatchConstraints.ResourceRules {
		list = append(list, rule.RuleWithOperations)
	}

	if diff := cmp.Diff([]string{"aws.m.upbound.io/providerconfigusages DELETE"}, fixture.Asked(list)); diff != "" {
		t.Errorf("guarded, -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(`oldObject.?resourceRef.?apiVersion.orValue('').split('/')[0] in ["s3.aws.m.upbound.io"]`,
		got.MatchConditions[2].Expression); diff != "" {
		t.Errorf("of what it is guarded, -want, +got:\n%s", diff)
	}

	_, hooks, err := admission.Options{}.Configurations(admission.GovernedKinds(admission.Config{}, []kind.Served{bucket}, nil), nil, usages)
	if err != nil || len(hooks.Webhooks) != 2 {
		t.Fatalf("%d webhooks, %v", len(hooks.Webhooks), err)
	}

	if diff := cmp.Diff([]string{"aws.m.upbound.io/providerconfigusages DELETE"}, fixture.Asked(hooks.Webhooks[1].Rules)); diff != "" {
		t.Errorf("asked about, -want, +got:\n%s", diff)
	}

	if none := (admission.Options{}).Guards(nil, usages)[2].Policy.Spec.MatchConstraints.ResourceRules; len(none) > 0 {
		t.Errorf("where nothing is gated it guards %v", none)
	}
}
