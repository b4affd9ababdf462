// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Who may start a chain by a policy: one of its own subjects by name, whoever has its
// Permission, and one of the subjects of a binding in the namespace that the object belongs
// to. See docs/semantics.md for which of them count by the policy's bindingMode.

// mightInitiate reports whether it is worth finding out whether the user may.
func (auth *authority) mightInitiate(p *policy.Policy) bool {
	return p.Permission() != "" || p.Bindable() || policy.MayInitiate(p.Spec().Subjects, auth.user)
}

// mayInitiate reports whether the user may start a chain by a policy.
func (auth *authority) mayInitiate(p *policy.Policy) bool {
	bindings := auth.bindings(p)

	if (!p.RequiresBinding() || auth.bound(p, bindings)) && (policy.MayInitiate(p.Spec().Subjects, auth.user) || auth.hasPermission(p)) {
		return true
	}

	return slices.ContainsFunc(bindings, func(b *policy.Binding) bool {
		return auth.boundBy(b) && auth.evaluateBinding(p, b).Met
	})
}

// bindings are those of a policy in the namespace that the object belongs to.
func (auth *authority) bindings(p *policy.Policy) []*policy.Binding {
	if !p.Bindable() {
		return nil
	}

	return auth.Bindings.Of(p.Name(), auth.home)
}

// bound reports whether one of some bindings of a policy counts: one that lets nobody
// initiate, whatever its conditions say, is as good as none.
func (auth *authority) bound(p *policy.Policy, bindings []*policy.Binding) bool {
	return slices.ContainsFunc(bindings, func(b *policy.Binding) bool {
		return !b.Overrides(p) && slices.ContainsFunc(b.Subjects(), auth.settings.SubjectOfBinding)
	})
}

// SubjectOfBinding reports whether a subject of a binding may be one who initiates by it,
// see [Settings.InitiatesByBinding]. Who is in a group nobody knows.
func (s Settings) SubjectOfBinding(subject v1alpha1.Subject) bool {
	switch subject.Kind {
	case v1alpha1.SubjectUser:
		return s.InitiatesByBinding(policy.User{Name: subject.Name})
	case v1alpha1.SubjectServiceAccount:
		return s.InitiatesByBinding(policy.User{Name: serviceaccount.MakeUsername(subject.Namespace, subject.Name)})
	default:
		return true
	}
}

// boundBy reports whether the user is one of a binding's subjects.
func (auth *authority) boundBy(b *policy.Binding) bool {
	return policy.MayInitiate(b.Subjects(), auth.user) && auth.settings.InitiatesByBinding(auth.user)
}

// InitiatesByBinding reports whether a user may initiate by a binding that names them.
// Those who act for others do not: whoever binds a group must not let Crossplane start
// chains that nobody asked for.
func (s Settings) InitiatesByBinding(u policy.User) bool {
	by := writerOf(u, "", s)

	return !by.isCrossplane() && !by.isManager() && !by.isProvider() && !ofKubernetes(u)
}

// bindingCosts are what the bindings that are evaluated for a request have used.
type bindingCosts struct {
	budget   *policy.Budget
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

// evaluateBinding checks the conditions of a binding of a policy, once.
func (auth *authority) evaluateBinding(p *policy.Policy, b *policy.Binding) policy.Evaluation {
	key := boundBefore{b, auth.before}

	v, ok := auth.ofBindings[key]
	if ok {
		return v
	}

	if auth.ledger.bindings.budget == nil {
		auth.ledger.bindings.budget = policy.NewBindingBudget()
	}

	v = auth.withinQuestions(func() policy.Evaluation { return b.Evaluate(p, auth.input(), auth.ledger.bindings.budget) })

	if auth.ofBindings == nil {
		auth.ofBindings = map[boundBefore]policy.Evaluation{}
	}

	auth.ofBindings[key] = v

	if v.Problem != nil && auth.ledger.bindings.telling() {
		auth.problems.add(&policy.EvaluationError{
			Kind: policy.KindBinding, Name: b.Name(), Err: fmt.Errorf("AllowanceBinding %q: %w", b.Name(), v.Problem),
		})
	}

	return v
}

// lackingSubject says why the user may not start a chain by a policy, and who may.
func lackingSubject(auth *authority, p *policy.Policy) string {
	bindings := auth.bindings(p)
	out := onlySome(whoMay(auth, p, bindings), auth.user.Name)

	if p.Bindable() && len(bindings) == 0 {
		return out + ": " + lackingBinding(auth.o, p)
	}

	var why []string
	if p.RequiresBinding() && !auth.bound(p, bindings) {
		why = append(why, lackingBinding(auth.o, p)+" for anyone")
	}

	if text := auth.lackingPermission(p); text != "" {
		why = append(why, text)
	}

	why = append(why, lackingOf(auth, p, bindings)...)

	if len(why) > 0 {
		out += ": " + strings.Join(why, "; ")
	}

	return out
}

// lackingOf says why bindings that name the user do not let them start a chain by a policy.
func lackingOf(auth *authority, p *policy.Policy, bindings []*policy.Binding) []string {
	var (
		out  []string
		more int
	)

	for _, b := range bindings {
		if !policy.MayInitiate(b.Subjects(), auth.user) {
			continue
		}

		if len(out) == maxRefused {
			more++

			continue
		}

		missing := "Crossplane, its providers, Kausality and Kubernetes' own controllers initiate nothing by one"
		if auth.boundBy(b) {
			missing = auth.evaluateBinding(p, b).Missing
		}

		out = append(out, fmt.Sprintf("AllowanceBinding %q names them, but %s", b.Name(), missing))
	}

	if more > 0 {
		out = append(out, fmt.Sprintf("so do %d more that do not let them", more))
	}

	return out
}

// lackingBinding says that there is no binding of a policy that may have one.
func lackingBinding(o objects, p *policy.Policy) string {
	need := "it accepts AllowanceBindings"
	if p.RequiresBinding() {
		need = "it requires an AllowanceBinding"
	}

	if home := o.home(); home != "" {
		return fmt.Sprintf("%s, and namespace %q has none", need, home)
	}

	return fmt.Sprintf("%s, and %s %q belongs to no namespace", need, o.target().GetKind(), resource.Name(o.target()))
}

// whoMay are all who may start a chain by a policy: its own subjects, where they count,
// and those of bindings that do not name the user.
func whoMay(auth *authority, p *policy.Policy, bindings []*policy.Binding) string {
	var all []v1alpha1.Subject
	if !p.RequiresBinding() || auth.bound(p, bindings) {
		all = append(all, p.Spec().Subjects...)
	}

	for _, b := range bindings {
		if policy.MayInitiate(b.Subjects(), auth.user) || b.Overrides(p) {
			continue
		}

		for _, s := range b.Subjects() {
			if auth.settings.SubjectOfBinding(s) {
				all = append(all, s)
			}
		}
	}

	return policy.Describe(all, func(s v1alpha1.Subject) bool { return s.MayInitiate })
}

// mayInitiateBy are those who may start a chain by a policy, whatever object it is about.
func mayInitiateBy(p *policy.Policy) string {
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
