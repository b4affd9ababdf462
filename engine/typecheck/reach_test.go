// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

func TestAPolicyThatNobodyCanMakeUseOfIsReported(t *testing.T) {
	person := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}
	controller := v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: "crossplane-system", Name: "crossplane"}
	data := []v1alpha1.Permission{{Kind: "ConfigMap", Mutations: []string{"data"}}}

	cases := map[string]struct {
		reason   string
		fields   []string
		subjects []v1alpha1.Subject
		allow    []v1alpha1.Permission
		given    []v1alpha1.Permission
		want     bool
	}{
		"Initiators":      {reason: "Who may initiate makes use of it.", subjects: []v1alpha1.Subject{controller, person}, allow: data},
		"Forbids":         {reason: "A policy that nobody may use on purpose says so.", allow: nil},
		"ForbidsSubjects": {reason: "One that names subjects meant something else.", subjects: []v1alpha1.Subject{controller}, want: true},
		"NothingAbove":    {reason: "Nobody allows its fields to be changed.", allow: data, want: true},
		"Above":           {reason: "Another policy does.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec"}}}},
		"Part":            {reason: "A part of it is enough.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", APIGroup: "example.org", Mutations: []string{"spec.size[0].unit"}}}},
		"Wildcard": {
			reason: "A wildcard may stand for it.", allow: data, fields: []string{"spec.items[*].name"},
			given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec.items[3]"}}},
		},
		"AnotherField": {reason: "Another field is not.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec.name"}}}, want: true},
		"AnotherKind":  {reason: "Nor is another kind.", allow: data, given: []v1alpha1.Permission{{Kind: "Base", Mutations: []string{"spec"}}}, want: true},
		"AnotherGroup": {reason: "Nor another group.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", APIGroup: "a", Mutations: []string{"spec"}}}, want: true},
		"External":     {reason: "An action outside is no field.", allow: data, given: []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{"spec"}}}, want: true},
		"Create":       {reason: "A creation is not covered by fields.", allow: data, fields: []string{"create"}, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec"}}}, want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.fields == nil {
				tc.fields = []string{"spec.size"}
			}

			p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match: v1alpha1.Match{APIGroup: "example.org", Kind: "Database", Fields: tc.fields}, Subjects: tc.subjects, Allow: tc.allow,
			}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			if got := typecheck.Reach(p.Spec(), tc.given); (len(got) > 0) != tc.want {
				t.Errorf("%s\nReach: %v", tc.reason, got)
			}
		})
	}
}

// metBelow are the conditions of a policy that decide only where a chain starts, where a window
// gives a permission.
func metBelow(p *v1alpha1.AllowancePolicy, given v1alpha1.Permission) []typecheck.Finding {
	window := v1alpha1.UpgradeAllowance{Spec: v1alpha1.UpgradeAllowanceSpec{Allow: []v1alpha1.Permission{given}}}
	list := typecheck.Policy(p, nil, nil, typecheck.GrantsOf(nil, []v1alpha1.UpgradeAllowance{window}))

	return slices.DeleteFunc(list, func(f typecheck.Finding) bool { return f.Rule != typecheck.MetBelow })
}

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

		// However a field is read, which one it is decides.
		"request['operation'] == 'UPDATE'":                                                      false,
		"request['userInfo'].username == 'x'":                                                   true,
		"request.?operation.orValue('') == 'UPDATE'":                                            false,
		"request.?userInfo.username.orValue('') == 'x'":                                         true,
		"request[?'namespace'].orValue('') == 'prod'":                                           false,
		"request[?'options'].hasValue()":                                                        true,
		"has(request['operation'])":                                                             false,
		"has(request.operation) && 'name' in request":                                           false,
		"has(request['userInfo'])":                                                              true,
		"'dryRun' in request":                                                                   true,
		"request[object.spec.field] == 'x'":                                                     true,
		"dyn(request).operation == 'UPDATE'":                                                    false,
		"dyn(request).userInfo.username == 'x'":                                                 true,
		"optional.of(request).?operation.orValue('') == 'UPDATE'":                               false,
		"optional.of(request).optMap(r, r.operation == 'UPDATE').orValue(false)":                false,
		"optional.of(request).optMap(r, r.userInfo.username == 'x').orValue(false)":             true,
		"optional.of(request).optMap(request, request.userInfo.username == 'x').orValue(false)": true,
		"optional.of(request).optMap(r, r).value().operation == 'UPDATE'":                       false,
		"optional.of(request).optMap(r, r).value().dryRun":                                      true,
		"[request].exists(r, r.operation == 'UPDATE')":                                          true,
		"variables.?what.orValue('') == 'x'":                                                    false,
		"variables.?whose.orValue('') == 'x'":                                                   true,
		"has(variables.what)":                                                                   false,

		// A dot before a name has it mean what is given, whatever a macro names.
		"[1].exists(now, .now > timestamp('2026-01-01T00:00:00Z') && now == 1)":                               true,
		"[1].exists(request, .request.userInfo.username == 'x' && request == 1)":                              true,
		"[1].exists(request, .request.operation == 'UPDATE' && request == 1)":                                 false,
		"[1].exists(authorizer, .authorizer.group('').resource('x').check('y').allowed() && authorizer == 1)": true,
		".now > timestamp('2026-01-01T00:00:00Z')":                                                            true,
		".variables.whose == 'x'":                         true,
		"authorizer.requestResource.check('y').allowed()": true,
	} {
		t.Run(expression, func(t *testing.T) {
			p := &v1alpha1.AllowancePolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec: v1alpha1.AllowancePolicySpec{Match: v1alpha1.Match{
					Kind: "Box", Fields: []string{"spec.size"}, Variables: variables, CEL: []string{"true"},
					MatchConditions: []v1alpha1.PolicyCondition{{MatchCondition: v1alpha1.MatchCondition{Name: "one", Expression: expression}}},
				}},
			}
			if _, errs := policy.Compile(p); len(errs) > 0 {
				t.Fatal(errs)
			}

			got := metBelow(p, v1alpha1.Permission{Kind: "Box", Mutations: []string{"spec"}})
			if reported := slices.ContainsFunc(got, func(f typecheck.Finding) bool {
				return f.Field == "spec.match.matchConditions[0]" && strings.Contains(f.Message, "counts as met")
			}); reported != want || len(got) > 1 {
				t.Errorf("reported: %v", got)
			}

			if got := metBelow(p, v1alpha1.Permission{Kind: "Other", Mutations: []string{"spec"}}); len(got) > 0 {
				t.Errorf("of a policy that nothing leads to: %v", got)
			}
		})
	}
}
