// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package inforce

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// ObjectsOf are the objects that a basis was compiled from, as far as decisions depend on
// them: compiled again, they decide the same. What does not compile is among them where
// that matters. They are in order, and share with the basis: not to be modified.
func ObjectsOf(b request.Basis) Objects {
	out := Objects{}

	for _, p := range b.Policies.Every() {
		out.Policies = append(out.Policies, policyOf(p.Name(), p.Generation(), p.Spec()))
	}

	for _, p := range b.Policies.Broken() {
		out.Policies = append(out.Policies, policyOf(p.Name, p.Generation, p.Spec))
	}

	for _, one := range b.Bindings.All() {
		namespace, name, _ := strings.Cut(one.Name(), "/")
		out.Bindings = append(out.Bindings, v1alpha1.AllowanceBinding{
			TypeMeta: typeOf(v1alpha1.KindBinding), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: *one.Spec(),
		})
	}

	for _, w := range b.Upgrades {
		out.Windows = append(out.Windows, v1alpha1.UpgradeAllowance{
			TypeMeta: typeOf(v1alpha1.KindUpgrade), ObjectMeta: metav1.ObjectMeta{
				Name: w.Object.GetName(), UID: w.Object.GetUID(),
				Generation: w.Object.GetGeneration(),
			},
			Spec: w.Object.Spec, Status: v1alpha1.UpgradeAllowanceStatus{
				Active:             w.Object.Status.Active,
				ObservedGeneration: w.Object.Status.ObservedGeneration,
			},
		})
	}

	for _, e := range b.Enforcements {
		out.Enforcements = append(out.Enforcements, v1alpha1.Enforcement{
			TypeMeta:   typeOf(v1alpha1.KindEnforcement),
			ObjectMeta: metav1.ObjectMeta{Name: e.Name(), Generation: e.Generation()}, Spec: *e.Spec(),
		})
	}

	return out
}

func policyOf(name string, generation int64, spec *v1alpha1.AllowancePolicySpec) v1alpha1.AllowancePolicy {
	return v1alpha1.AllowancePolicy{
		TypeMeta: typeOf(v1alpha1.KindPolicy), ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}, Spec: *spec,
	}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: kind}
}

// ReadNamespaces reports whether any policy or Enforcement reads the namespace of an
// object.
func (o *Objects) ReadNamespaces() bool {
	reads := func(expression string) bool { return strings.Contains(expression, "namespaceObject") }
	written := func(w policy.Written) bool { return reads(w.Text) }

	for i := range o.Policies {
		if m := &o.Policies[i].Spec.Match; m.NamespaceSelector != nil || slices.ContainsFunc(policy.Expressions(m), written) {
			return true
		}
	}

	return slices.ContainsFunc(o.Enforcements, func(e v1alpha1.Enforcement) bool {
		return e.Spec.Match.NamespaceSelector != nil ||
			slices.ContainsFunc(e.Spec.MatchConditions, func(c v1alpha1.MatchCondition) bool { return reads(c.Expression) })
	})
}

// Enforced are policies with all of them in force that is in Shadow mode.
func Enforced(list []v1alpha1.AllowancePolicy) []v1alpha1.AllowancePolicy {
	out := make([]v1alpha1.AllowancePolicy, len(list))

	for i := range list {
		list[i].DeepCopyInto(&out[i])

		spec := &out[i].Spec
		if spec.EnforcementMode == v1alpha1.EnforcementModeShadow {
			spec.EnforcementMode = v1alpha1.EnforcementModeEnforce
		}

		for k := range spec.Match.MatchConditions {
			if c := &spec.Match.MatchConditions[k]; c.EnforcementMode == v1alpha1.EnforcementModeShadow {
				c.EnforcementMode = v1alpha1.EnforcementModeEnforce
			}
		}
	}

	return out
}
