// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestWhatIsKnownOnlyWhereAChainStartsIsReported has conditions of a policy that others
// lead to.
func TestWhatIsKnownOnlyWhereAChainStartsIsReported(t *testing.T) {
	variables := []v1alpha1.Variable{
		{Name: "who", Expression: "request.userInfo.username"},
		{Name: "what", Expression: "request.name"},
		{Name: "whose", Expression: "variables.who + 's'"},
	}

	for expression, want := range map[string]bool{
		"object.spec.size == 'large'":                                        false,
		"parent == null || parent.spec.size == 'large'":                      false,
		"now > timestamp('2026-01-01T00:00:00Z')":                            true,
		"object.spec.list.exists(now, now == 'x')":                           false,
		"has(request.userInfo.extra)":                                        true,
		"request.userInfo.groups.exists(g, g == 'x')":                        true,
		"request.dryRun":                                                     true,
		"request.?options.fieldManager.orValue('') == 'x'":                   true,
		"request == null":                                                    true,
		"request.operation == 'UPDATE' && request.subResource == ''":         false,
		"request.kind.kind == 'Box' && request.resource.resource == 'boxes'": false,
		"request.name == 'x' && request.namespace == 'y'":                    false,
		"variables.what == 'x'":                                              false,
		"variables.whose == 'x'":                                             true,
		"[now].exists(now, now > timestamp('2026-01-01T00:00:00Z'))":         true,
		"object.spec.list.exists(x, now.getFullYear() > x)":                  true,
		"object.spec.list.exists(request, request.userInfo == 'x')":          false,
	} {
		t.Run(expression, func(t *testing.T) {
			p, errs := policy.Compile(&v1alpha1.AllowancePolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec: v1alpha1.AllowancePolicySpec{Match: v1alpha1.Match{
					Kind: "Box", Fields: []string{"spec.size"}, Variables: variables, CEL: []string{"true"},
					MatchConditions: []v1alpha1.PolicyCondition{{MatchCondition: v1alpha1.MatchCondition{Name: "one", Expression: expression}}},
				}},
			})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			got := p.CheckStart([]v1alpha1.Permission{{Kind: "Box", Mutations: []string{"spec"}}})
			if reported := slices.ContainsFunc(got, func(w v1alpha1.TypeCheckingWarning) bool {
				return w.Field == "spec.match.matchConditions[0]" && strings.Contains(w.Warning, "counts as met")
			}); reported != want || len(got) > 1 {
				t.Errorf("reported: %v", got)
			}

			if got := p.CheckStart([]v1alpha1.Permission{{Kind: "Other", Mutations: []string{"spec"}}}); len(got) > 0 {
				t.Errorf("of a policy that nothing leads to: %v", got)
			}
		})
	}
}
