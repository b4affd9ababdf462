// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Who may start a chain by a policy: one of its own subjects by name, whoever has its
// Permission, and one of the subjects of a binding in the namespace that the object belongs
// to. See docs/semantics.md for which of them count by the policy's bindingMode.

// MightInitiate reports whether it is worth finding out whether the user may.
func (auth *Authority) MightInitiate(p *policy.Policy) bool {
	return p.Permission() != "" || p.Bindable() || policy.MayInitiate(p.Spec().Subjects, auth.User)
}

// MayInitiate reports whether the user may start a chain by a policy.
func (auth *Authority) MayInitiate(p *policy.Policy) bool {
	bindings := auth.BindingsOf(p)

	if (!p.RequiresBinding() || auth.Bound(p, bindings)) && (policy.MayInitiate(p.Spec().Subjects, auth.User) || auth.HasPermission(p)) {
		return true
	}

	return slices.ContainsFunc(bindings, func(b *policy.Binding) bool {
		return auth.BoundBy(b) && auth.EvaluateBinding(p, b).Met
	})
}

// BindingsOf are those of a policy in the namespace that the object belongs to.
func (auth *Authority) BindingsOf(p *policy.Policy) []*policy.Binding {
	if !p.Bindable() {
		return nil
	}

	return auth.Bindings.Of(p.Name(), auth.home)
}

// Bound reports whether one of some bindings of a policy counts: one that lets nobody
// initiate, whatever its conditions say, is as good as none.
func (auth *Authority) Bound(p *policy.Policy, bindings []*policy.Binding) bool {
	return slices.ContainsFunc(bindings, func(b *policy.Binding) bool {
		return !b.Overrides(p) && slices.ContainsFunc(b.Subjects(), auth.Settings.SubjectOfBinding)
	})
}

// BoundBy reports whether the user is one of a binding's subjects.
func (auth *Authority) BoundBy(b *policy.Binding) bool {
	return policy.MayInitiate(b.Subjects(), auth.User) && auth.Settings.InitiatesByBinding(auth.User)
}

// bindingCosts are what the bindings that are evaluated for a request have used.
type bindingCosts struct {
	budget   *expression.Budget
	reported int
}

// maxReported is how many bindings of a request are reported that cannot be evaluated for
// their costs.
const maxReported = 10

// telling says whether a binding that cannot be evaluated is to be reported: where
// nothing is left for any, not all that come after are.
func (c *bindingCosts) telling() bool {
	if !c.budget.Used() {
		return true
	}

	c.reported++

	return c.reported <= maxReported
}

// EvaluateBinding checks the conditions of a binding of a policy, once.
func (auth *Authority) EvaluateBinding(p *policy.Policy, b *policy.Binding) policy.Evaluation {
	key := boundBefore{b, auth.before}

	v, ok := auth.ofBindings[key]
	if ok {
		return v
	}

	if auth.Ledger.bindings.budget == nil {
		auth.Ledger.bindings.budget = expression.NewBindingBudget()
	}

	v = auth.withinQuestions(func() policy.Evaluation { return b.Evaluate(p, auth.Input(), auth.Ledger.bindings.budget) })

	if auth.ofBindings == nil {
		auth.ofBindings = map[boundBefore]policy.Evaluation{}
	}

	auth.ofBindings[key] = v

	if v.Problem != nil && auth.Ledger.bindings.telling() {
		auth.Problems.Add(&expression.EvaluationError{
			Kind: v1alpha1.KindBinding, Name: b.Name(), Err: fmt.Errorf("AllowanceBinding %q: %w", b.Name(), v.Problem),
		})
	}

	return v
}

// LackingBinding says that there is no binding of a policy that may have one.
func LackingBinding(o request.Objects, p *policy.Policy) string {
	need := "it accepts AllowanceBindings"
	if p.RequiresBinding() {
		need = "it requires an AllowanceBinding"
	}

	if home := o.Home(); home != "" {
		return fmt.Sprintf("%s, and namespace %q has none", need, home)
	}

	return fmt.Sprintf("%s, and %s %q belongs to no namespace", need, o.Target().GetKind(), resource.Name(o.Target()))
}

// WhoMay are all who may start a chain by a policy: its own subjects, where they count,
// and those of bindings that do not name the user.
func WhoMay(auth *Authority, p *policy.Policy, bindings []*policy.Binding) string {
	var all []v1alpha1.Subject
	if !p.RequiresBinding() || auth.Bound(p, bindings) {
		all = append(all, p.Spec().Subjects...)
	}

	for _, b := range bindings {
		if policy.MayInitiate(b.Subjects(), auth.User) || b.Overrides(p) {
			continue
		}

		for _, s := range b.Subjects() {
			if auth.Settings.SubjectOfBinding(s) {
				all = append(all, s)
			}
		}
	}

	return policy.Describe(all, func(s v1alpha1.Subject) bool { return s.MayInitiate })
}

// MayInitiateBy are those who may start a chain by a policy, whatever object it is about.
func MayInitiateBy(p *policy.Policy) string {
	const bound = "a subject of an AllowanceBinding in its namespace"

	own := policy.Describe(p.Spec().Subjects, func(s v1alpha1.Subject) bool { return s.MayInitiate })

	switch {
	case !p.Bindable():
		return own
	case own == policy.Nobody:
		return bound
	default:
		return own + " or " + bound
	}
}

// DecidesWho reports whether a policy says who may initiate a change, or that nobody
// may.
func (auth *Authority) DecidesWho(c change.Change) bool {
	return slices.ContainsFunc(auth.Policies.For(auth.kind), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec()) && p.Touches(c) || auth.Forbids(p, c)
	})
}

// Forbids reports whether a policy says that nobody may make a change: where it selects
// the object before or after, and its expressions hold or cannot be evaluated, also for
// want of its parameters.
func (auth *Authority) Forbids(p *policy.Policy, c change.Change) bool {
	if !p.Forbids() || !p.Touches(c) || !p.MaySelect(auth.Input()) {
		return false
	}

	v := auth.Evaluate(p)

	return v.Met || v.Problem != nil || v.Kind == policy.LackSelector || v.Kind == policy.LackParameter
}
