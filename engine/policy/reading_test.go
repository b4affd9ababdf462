// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestWhatReadsTheParentIsKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"parent.spec.frozen":                                      true,
		".parent.spec.frozen":                                     true,
		"object.spec.parent == 'x'":                               false,
		"[1].exists(parent, parent == 1)":                         false,
		"[1].exists(parent, !has(.parent.spec.x) && parent == 1)": true,
		"optional.of(parent).optMap(parent, !has(parent.spec.frozen)).orValue(false)": true,
	} {
		e, err := expression.Compile(text)
		if err != nil {
			t.Fatal(err)
		}

		if got := e.ReadsParent(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
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
