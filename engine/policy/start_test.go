// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

func TestWhatReadsTheParentIsKnown(t *testing.T) {
	for expression, want := range map[string]bool{
		"parent.spec.frozen":                                      true,
		".parent.spec.frozen":                                     true,
		"object.spec.parent == 'x'":                               false,
		"[1].exists(parent, parent == 1)":                         false,
		"[1].exists(parent, !has(.parent.spec.x) && parent == 1)": true,
		"optional.of(parent).optMap(parent, !has(parent.spec.frozen)).orValue(false)": true,
	} {
		e, err := policy.CompileExpression(expression)
		if err != nil {
			t.Fatal(err)
		}

		if got := e.ReadsParent(); got != want {
			t.Errorf("%s: %v, want %v", expression, got, want)
		}
	}
}

// TestOnlyWhatIsInForceHasTheParentRead has policies and bindings that read it, in Shadow mode
// or not.
func TestOnlyWhatIsInForceHasTheParentRead(t *testing.T) {
	const reads = "parent == null || !has(parent.spec.frozen)"

	box := schema.GroupKind{Group: "example.org", Kind: "Box"}
	plain := v1alpha1.Match{Kind: "Box", Fields: []string{"spec.size"}}

	match := func(mode v1alpha1.EnforcementMode, expression string) v1alpha1.Match {
		out := plain
		out.Variables = []v1alpha1.Variable{{Name: "frozen", Expression: "has(parent.spec.frozen)"}}
		out.MatchConditions = []v1alpha1.PolicyCondition{{
			MatchCondition: v1alpha1.MatchCondition{Name: "one", Expression: expression}, EnforcementMode: mode,
		}}

		return out
	}

	cases := map[string]struct {
		reason string
		spec   v1alpha1.AllowancePolicySpec
		// bound is the policy that a binding which reads the parent is of.
		bound        string
		want, shadow bool
	}{
		"Enforced":       {"A policy in force reads it.", v1alpha1.AllowancePolicySpec{Match: match("", reads)}, "", true, false},
		"Shadow":         {"One in Shadow mode has to wait.", v1alpha1.AllowancePolicySpec{Match: match("", reads), EnforcementMode: v1alpha1.EnforcementModeShadow}, "", false, true},
		"Condition":      {"So has a condition.", v1alpha1.AllowancePolicySpec{Match: match(v1alpha1.EnforcementModeShadow, reads)}, "", false, true},
		"Variable":       {"A variable counts where it is used.", v1alpha1.AllowancePolicySpec{Match: match("", "variables.frozen")}, "", true, false},
		"ShadowVariable": {"Also where that is in Shadow mode.", v1alpha1.AllowancePolicySpec{Match: match(v1alpha1.EnforcementModeShadow, "variables.frozen")}, "", false, true},
		"Unused":         {"One that nothing uses is not evaluated.", v1alpha1.AllowancePolicySpec{Match: match("", "true")}, "", false, false},
		"Bound":          {"A binding reads it where its policy may have some.", v1alpha1.AllowancePolicySpec{Match: plain, BindingMode: v1alpha1.BindingModeOptional}, "p", true, false},
		"BoundShadow":    {"That of a policy in Shadow mode has to wait.", v1alpha1.AllowancePolicySpec{Match: plain, BindingMode: v1alpha1.BindingModeOptional, EnforcementMode: v1alpha1.EnforcementModeShadow}, "p", false, true},
		"BoundNone":      {"One that grants nothing is not evaluated.", v1alpha1.AllowancePolicySpec{Match: plain}, "p", false, false},
		"BoundElsewhere": {"Nor is that of another policy.", v1alpha1.AllowancePolicySpec{Match: plain, BindingMode: v1alpha1.BindingModeOptional}, "other", false, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, errs := policy.Compile(&v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: tc.spec})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			b, errs := policy.CompileBinding(&v1alpha1.AllowanceBinding{Spec: v1alpha1.AllowanceBindingSpec{
				Policy: tc.bound, MatchConditions: []v1alpha1.BindingCondition{{MatchCondition: v1alpha1.MatchCondition{Name: "one", Expression: reads}}},
			}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			set, bindings := policy.NewSet(p), policy.NewBindings(b)

			if got := set.ReadsParent(box, bindings); got != tc.want {
				t.Errorf("%s\nReadsParent: %v, want %v", tc.reason, got, tc.want)
			}

			if got := set.ShadowReadsParent(box, bindings); got != tc.shadow && tc.shadow {
				t.Errorf("%s\nShadowReadsParent: %v, want %v", tc.reason, got, tc.shadow)
			}
		})
	}
}
