// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// typeCheckBindings finds what the status of bindings would say, and policies that require
// one where there is none.
func (l *linter) typeCheckBindings() {
	never := typecheck.NeverByBinding(func(user string) bool { return l.Input.Settings.InitiatesByBinding(policy.User{Name: user}) })
	bound := map[string]bool{}

	for _, b := range l.Input.Bindings {
		bound[b.Object.Spec.Policy] = true

		p, refused := l.policy(b.Object.Spec.Policy)
		if p == nil {
			p = &v1alpha1.AllowancePolicy{}
		}

		if l.broken[b.At] {
			continue
		}

		l.report.AddAll(b.At, typecheck.Binding(b.Object, p, l.Input.Kinds, l.Input.Schemas, never))

		// Where no policy was read at all, those of the cluster are meant.
		if len(l.Input.Policies) > 0 {
			l.checkBinding(b, p, refused)
		}
	}

	for _, p := range l.Input.Policies {
		if len(l.Input.Bindings) > 0 && !bound[p.Object.GetName()] && p.Object.Spec.BindingMode == v1alpha1.BindingModeRequired {
			l.report.Add(p.At, typecheck.BindingMissing, "spec.bindingMode",
				"nobody initiates by the policy: it requires a binding, and none of those that were read is of it",
				"add an AllowanceBinding of it in each namespace where it is to count")
		}
	}
}

// policy is the one of a name, and whether admission refuses it; nil for none.
func (l *linter) policy(name string) (p *v1alpha1.AllowancePolicy, refused bool) {
	for _, one := range l.Input.Policies {
		if one.Object.GetName() == name {
			return one.Object, l.broken[one.At]
		}
	}

	return nil, false
}

// Unbound says why a binding grants nothing by its policy: the reason of its Ready condition, and a
// message; empty where it may. A policy without a name is one that is not there.
func Unbound(b *v1alpha1.AllowanceBinding, p *v1alpha1.AllowancePolicy) (reason, message string) {
	switch name := b.Spec.Policy; {
	case p.GetName() == "":
		return v1alpha1.ReasonPolicyUnknown, fmt.Sprintf("there is no AllowancePolicy %q", name)
	case !policy.Bindable(&p.Spec):
		return v1alpha1.ReasonNotBindable,
			fmt.Sprintf("AllowancePolicy %q says nothing of bindings: its bindingMode has to be Optional or Required", name)
	case b.Spec.ParamRef != nil && !policy.Overridable(&p.Spec):
		return v1alpha1.ReasonNotOverridable,
			fmt.Sprintf("the binding has a paramRef, and that of AllowancePolicy %q is not overridable", name)
	default:
		return "", ""
	}
}

// checkBinding finds why a binding would grant nothing.
func (l *linter) checkBinding(b typecheck.Item[*v1alpha1.AllowanceBinding], p *v1alpha1.AllowancePolicy, refused bool) {
	const at = "spec.policy"

	switch reason, message := Unbound(b.Object, p); {
	case reason == v1alpha1.ReasonPolicyUnknown:
		l.report.Add(b.At, typecheck.BindingPolicy, at, message, l.policyRemedy(b.Object.Spec.Policy))
	case refused:
		l.report.Add(b.At, typecheck.BindingPolicy, at,
			fmt.Sprintf("AllowancePolicy %q is refused, and so nobody initiates by its binding", p.GetName()), "correct the policy")
	case reason == v1alpha1.ReasonNotBindable:
		l.report.Add(b.At, typecheck.BindingPolicy, at, message, "set spec.bindingMode of the policy")
	case reason == v1alpha1.ReasonNotOverridable:
		l.report.Add(b.At, typecheck.BindingPolicy, "spec.paramRef", message, "take it away, or set spec.paramRef.overridable of the policy")
	}
}

// policyRemedy is what helps where there is no policy of a name.
func (l *linter) policyRemedy(name string) string {
	names := make([]string, 0, len(l.Input.Policies))
	for _, one := range l.Input.Policies {
		names = append(names, one.Object.GetName())
	}

	if like := typecheck.Alike(name, names); len(like) > 0 {
		return fmt.Sprintf("name %q, if that is meant", like[0])
	}

	return "give it, too, with --filename"
}
