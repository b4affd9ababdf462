// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// TestARuleIsAboutRequestsAsThoseOfAdmissionAre has what the corpus has no request for.
func TestARuleIsAboutRequestsAsThoseOfAdmissionAre(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.org", Resource: "widgets"}
	rule := func(change func(*v1alpha1.ResourceRule)) v1alpha1.ResourceRule {
		r := v1alpha1.ResourceRule{APIGroups: []string{"*"}, Resources: []string{"widgets"}}
		change(&r)

		return r
	}

	update := enforcement.Target{Resource: widgets, Versions: []string{"v1", "v1beta1"}, Operation: v1alpha1.OperationUpdate, Namespaced: true, Name: "w"}
	unknown, unnamed, root := update, update, update
	unknown.Versions, unnamed.Name, root.Namespaced = nil, "", false

	v1beta1 := rule(func(r *v1alpha1.ResourceRule) { r.APIVersions = []string{"v1beta1"} })
	v2 := rule(func(r *v1alpha1.ResourceRule) { r.APIVersions = []string{"v2"} })
	all := rule(func(*v1alpha1.ResourceRule) {})

	for name, tc := range map[string]struct {
		reason           string
		include, exclude []v1alpha1.ResourceRule
		target           enforcement.Target
		want             bool
	}{
		"Served":          {"A version in which it is served, whichever the request is in.", []v1alpha1.ResourceRule{v1beta1}, nil, update, true},
		"Unserved":        {"One in which it is not.", []v1alpha1.ResourceRule{v2}, nil, update, false},
		"Unknown":         {"Where that is not known, nothing is left out.", []v1alpha1.ResourceRule{v2}, nil, unknown, true},
		"Excluded":        {"What is excluded by version is.", []v1alpha1.ResourceRule{all}, []v1alpha1.ResourceRule{v1beta1}, update, false},
		"ExcludedUnknown": {"And is not where that is not known.", []v1alpha1.ResourceRule{all}, []v1alpha1.ResourceRule{v1beta1}, unknown, true},
		"Wildcards": {"A wildcard is anything.", []v1alpha1.ResourceRule{rule(func(r *v1alpha1.ResourceRule) {
			r.APIVersions, r.Operations, r.Scope = []string{"*"}, []v1alpha1.Operation{v1alpha1.OperationAll}, v1alpha1.ScopeAll
		})}, nil, update, true},
		"Unnamed": {"What gets its name later has none.", []v1alpha1.ResourceRule{rule(func(r *v1alpha1.ResourceRule) {
			r.ResourceNames = []string{"w"}
		})}, nil, unnamed, false},
		"ClusterScoped": {"What is in no namespace is of the cluster.", []v1alpha1.ResourceRule{rule(func(r *v1alpha1.ResourceRule) {
			r.Scope = v1alpha1.ScopeCluster
		})}, nil, root, true},
		"Second": {"One rule is enough.", []v1alpha1.ResourceRule{v2, all}, nil, update, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, errs := enforcement.Compile(&v1alpha1.Enforcement{
				ObjectMeta: metav1.ObjectMeta{Name: "e"},
				Spec: v1alpha1.EnforcementSpec{
					Match:             v1alpha1.EnforcementMatch{ResourceRules: tc.include, ExcludeResourceRules: tc.exclude},
					ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny},
				},
			})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			object := map[string]any{"metadata": map[string]any{"name": "w"}}

			got, err := e.Governs(tc.target, expression.Input{Object: object, OldObject: object})
			if err != nil || got != tc.want {
				t.Errorf("%s\nGoverns: %t, %v", tc.reason, got, err)
			}

			if got && !e.Covers(widgets) {
				t.Errorf("%s\nit governs what it does not cover", tc.reason)
			}
		})
	}
}

// TestOperationsAreThoseThatAnyRuleIsAbout is what webhooks are asked by.
func TestOperationsAreThoseThatAnyRuleIsAbout(t *testing.T) {
	e, errs := enforcement.Compile(&v1alpha1.Enforcement{Spec: v1alpha1.EnforcementSpec{
		Match: v1alpha1.EnforcementMatch{
			ResourceRules: []v1alpha1.ResourceRule{
				{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, Operations: []v1alpha1.Operation{v1alpha1.OperationDelete}},
				{APIGroups: []string{"example.org"}, Resources: []string{"*"}, Operations: []v1alpha1.Operation{v1alpha1.OperationCreate}},
			},
			ExcludeResourceRules: []v1alpha1.ResourceRule{
				{APIGroups: []string{"example.org"}, Resources: []string{"gadgets"}},
				{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, ResourceNames: []string{"w"}},
			},
		},
		ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny},
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	for resource, want := range map[string]string{"widgets": "[CREATE DELETE]", "boxes": "[CREATE]", "gadgets": "[]"} {
		if got := fmt.Sprint(e.Operations(schema.GroupResource{Group: "example.org", Resource: resource})); got != want {
			t.Errorf("%s: %s, want %s", resource, got, want)
		}
	}
}
