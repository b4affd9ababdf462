// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A gate that opens for one change lets out all of the spec. A change that is
// allowed without External Update must not leave with another one: it is held.

// goesOut reports whether a change is of what a provider makes of the external
// object.
func goesOut(c change.Change) bool {
	return under(c, "spec", "forProvider") || under(c, "spec", "initProvider")
}

// stays reports whether an allowed change is for the managed resource alone, and
// not for what is behind its gate.
func (t *gating) stays(f Finding) bool {
	if t.succeeded(f) {
		return true
	}

	if t.replaces(f.Change) {
		return !allow(f.cause.external, gate.MakeAnew) && !t.injects(f, gate.MakeAnew)
	}

	return goesOut(f.Change) && t.gated && !t.buildsUp() && !allow(f.cause.external, letsOut) && !t.injects(f, letsOut)
}

// building adds what may be done to the external object of a managed resource
// that its parent builds up, by whatever rule that is.
func (t *gating) building(f Finding) Finding {
	if t.Operation != OperationDelete && resource.IsManaged(t.target()) && t.buildsUp() && !allow(f.cause.external, letsOut) {
		f.cause.external = allowance.Merge(f.cause.external, implicitExternal())
	}

	return f
}

// implicitExternal is what a parent that is built up may do to external objects.
func implicitExternal() []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{gate.ActionCreate, gate.ActionUpdate},
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceCreation},
	}}
}

// allow reports whether one of some allowances is for External actions of a kind.
func allow(list []v1alpha1.Allowance, is func([]string) bool) bool {
	return slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool { return allowance.External(a) && is(a.Mutations) })
}

// letsOut reports whether actions make of the external object what the spec says: by
// an update, or by making it anew.
func letsOut(actions []string) bool {
	return slices.Contains(gate.Acting(actions), gate.ActionUpdate) || gate.MakeAnew(actions)
}

// injects reports whether a policy about the object's kind gives External actions of a kind for an allowed change.
func (t *gating) injects(f Finding, is func([]string) bool) bool {
	return slices.ContainsFunc(t.Policies.For(t.groupKind()), func(p *policy.Policy) bool {
		return p.Covers(f.Change) && opensGate(p, is) && t.mayInject(p, f) && t.evaluateFor(p, f).Met
	})
}

// opensGate reports whether a policy allows External actions of a kind.
func opensGate(p *policy.Policy, is func([]string) bool) bool {
	return slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
		return a.Relation == v1alpha1.RelationExternal && is(a.Mutations)
	})
}

// waits makes of a change that is allowed for the managed resource alone one that is not allowed: its gate would not open for it,
// and let it out with another one.
func (t *gating) waits(f Finding) Finding {
	if !t.stays(f) {
		return f
	}

	by, l := fmt.Sprintf("policy %q", f.Policy), Lack{Policy: f.Policy, What: policy.LackField}

	switch {
	case f.Policy == "":
		by = "an allowance"
	case f.Rule == RuleUpgrade:
		by, l.What = fmt.Sprintf("%s %q", f.Rule, f.Policy), policy.LackWindow
	case f.Rule == RuleException:
		by, l.Policy = fmt.Sprintf("%s %q", f.Rule, f.Policy), "" // It is no policy.
	}

	l.Text, l.Fix = by+" allows it, but not External Update, which opens its gate", "allow External Update, too"

	switch {
	case t.succeeded(f):
		l.Text, l.Fix = "", "remove Delete from its managementPolicies first, or approve it"
	case t.replaces(f.Change):
		l.Text, l.Fix = by+" allows it without these", "allow these, too, or approve it"
	default:
		l.Short = by + " does not allow External Update"
	}

	out := t.lacking(f.Change, []Lack{l})
	out.alone = true

	return out
}
