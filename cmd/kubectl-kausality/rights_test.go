// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// serves is the discovery of an API server.
type serves struct {
	discovery.CachedDiscoveryInterface

	lists []*metav1.APIResourceList
}

func (serves) ServerVersion() (*apiversion.Info, error) { return &apiversion.Info{}, nil }

func (s serves) ServerPreferredResources() ([]*metav1.APIResourceList, error) { return s.lists, nil }

// examined is a cluster with some policies, in which the manager may do all.
func examined(policies ...*unstructured.Unstructured) *cluster {
	kinds := map[schema.GroupVersionResource]string{}
	for _, src := range append(doctor.Sources(), doctor.Leases, doctor.Secrets) {
		kinds[schema.GroupVersionResource{Group: src.Group, Version: src.Version, Resource: src.Resource}] = src.Resource + "List"
	}

	list := make([]runtime.Object, len(policies))
	for i, u := range policies {
		list[i] = u
	}

	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, list...)
	client.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"allowed": true}}}, nil
	})

	all := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

	return &cluster{client: client, mapper: meta.NewDefaultRESTMapper(nil), discovery: serves{lists: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all}}},
		{GroupVersion: "limits.example.org/v1", APIResources: []metav1.APIResource{{Name: "limits", Kind: "Limit", Namespaced: true, Verbs: all}}},
		{GroupVersion: "seen.example.org/v1", APIResources: []metav1.APIResource{{Name: "readings", Kind: "Reading", Verbs: metav1.Verbs{"get", "list", "watch"}}}},
		{GroupVersion: "metrics.k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}},
	}}}
}

// TestTheRolesThatReadParametersArePrinted for the manager and for Crossplane.
func TestTheRolesThatReadParametersArePrinted(t *testing.T) {
	t.Parallel()

	const (
		none = "The manager (service account kausality-system/kausality-manager) has all rights that what is governed takes.\n"
		role = `# The manager and Crossplane have to be allowed to read %[1]s, which hold parameters of policies.
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    kausality.io/aggregate-to-manager: "true"
    rbac.crossplane.io/aggregate-to-crossplane: "true"
  name: kausality-governed:params:%[1]s
rules:
- apiGroups:
  - %[2]s
  resources:
  - %[3]s
  verbs:
  - get
  - list
  - watch
`
	)

	cases := map[string]struct {
		reason, apiVersion, kind, condition string
		all                                 bool
		out, say                            string
	}{
		"Unreadable": {
			reason: "What neither may read.", apiVersion: "limits.example.org/v1", kind: "Limit", condition: `status: "False", observedGeneration: 3`,
			out: fmt.Sprintf(role, "limits.limits.example.org", "limits.example.org", "limits"),
		},
		"Core": {
			reason: "Also of the core group, which has no name.", apiVersion: "v1", kind: "ConfigMap", condition: `status: "False", observedGeneration: 3`,
			out: fmt.Sprintf(role, "configmaps", `""`, "configmaps"),
		},
		"Readable": {
			reason: "What both may needs no role.", apiVersion: "limits.example.org/v1", kind: "Limit", condition: `status: "True", observedGeneration: 3`,
			say: none,
		},
		"Before": {
			reason: "That they might read what the policy had before says nothing.", apiVersion: "limits.example.org/v1", kind: "Limit", condition: `status: "True", observedGeneration: 2`,
			out: fmt.Sprintf(role, "limits.limits.example.org", "limits.example.org", "limits"),
		},
		"All": {
			reason: "Or is asked for.", apiVersion: "limits.example.org/v1", kind: "Limit", condition: `status: "True", observedGeneration: 3`, all: true,
			out: fmt.Sprintf(role, "limits.limits.example.org", "limits.example.org", "limits"),
		},
		"NeverChanged": {
			reason: "Nobody need be able to change them.", apiVersion: "seen.example.org/v1", kind: "Reading", condition: `status: "False", observedGeneration: 3`,
			out: fmt.Sprintf(role, "readings.seen.example.org", "seen.example.org", "readings"),
		},
		"NeverWatched": {
			reason: "With no role could anybody watch these.", apiVersion: "metrics.k8s.io/v1beta1", kind: "PodMetrics", condition: `status: "False", observedGeneration: 3`,
			say: none,
		},
		"Unserved": {
			reason: "Nor what there is not.", apiVersion: "gone.example.org/v1", kind: "Gone", condition: `status: "False", observedGeneration: 3`,
			say: none,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := examined(parse(t, `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: sizes, generation: 3}
spec:
  paramKind: {apiVersion: `+tc.apiVersion+`, kind: `+tc.kind+`}
  paramRef: {name: default, namespace: platform}
  match: {kind: Nothing, fields: [spec.size]}
  allow: [{kind: Nothing, mutations: [spec.size]}]
status: {conditions: [{type: ParametersReadable, `+tc.condition+`}]}`))

			var out, say bytes.Buffer
			if err := prescribe(t.Context(), c, &out, &say, doctorOptions{roles: true, held: tc.all}); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff([]string{tc.out, tc.say}, []string{out.String(), say.String()}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTheManagerWritesConditionsOfClaimsAndXRs and so the doctor asks for the right to.
func TestTheManagerWritesConditionsOfClaimsAndXRs(t *testing.T) {
	t.Parallel()

	var lists metav1.APIResourceList

	lists.GroupVersion = "shop.example.org/v1"
	for kind, category := range map[string]string{"Claim": "claim", "XR": "composite", "Instance": "managed", "Plain": "all"} {
		lists.APIResources = append(lists.APIResources, metav1.APIResource{
			Name: strings.ToLower(kind) + "s", Kind: kind, Categories: []string{category}, Verbs: metav1.Verbs{"get", "update"},
		})
	}

	c := &cluster{discovery: serves{lists: []*metav1.APIResourceList{&lists}}}
	changed, _ := examination{c}.served()

	got := map[string]bool{}
	for _, k := range changed {
		got[k.Kind] = k.Conditions
	}

	if diff := cmp.Diff(map[string]bool{"Claim": true, "XR": true, "Instance": false, "Plain": false}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestOneRoleIsEnoughForAllPoliciesOfAKind of parameters.
func TestOneRoleIsEnoughForAllPoliciesOfAKind(t *testing.T) {
	t.Parallel()

	kinds := []string{"a limits.example.org/v1 Limit", "b limits.example.org/v1 Limit", "c v1 ConfigMap"}
	policies := make([]*unstructured.Unstructured, 0, len(kinds))

	for _, k := range kinds {
		f := strings.Fields(k)
		policies = append(policies, parse(t, "{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: "+f[0]+"}, "+
			"spec: {paramKind: {apiVersion: "+f[1]+", kind: "+f[2]+"}, paramRef: {name: a}, match: {kind: Nothing, fields: [spec]}, allow: []}}"))
	}

	var out, say bytes.Buffer
	if err := prescribe(t.Context(), examined(policies...), &out, &say, doctorOptions{roles: true}); err != nil {
		t.Fatal(err)
	}

	var names []string

	for line := range strings.Lines(out.String()) {
		if name, ok := strings.CutPrefix(line, "  name: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}

	if diff := cmp.Diff([]string{"kausality-governed:params:configmaps", "kausality-governed:params:limits.limits.example.org"}, names); diff != "" {
		t.Errorf("-want, +got:\n%s\n%s", diff, say.String())
	}
}
