// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

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
func stays(o objects, by writer, how manner, auth *authority, outside outside, now time.Time, f Finding) bool {
	if succeeded(o, outside, f) {
		return true
	}

	if replaces(o, outside, f.Change) {
		return !allow(f.cause.external, gate.MakeAnew) && !injects(o, auth, f, gate.MakeAnew)
	}

	return goesOut(f.Change) && outside.gated && !buildsUp(o, by, how, now) && !allow(f.cause.external, letsOut) &&
		!injects(o, auth, f, letsOut)
}

// withBuilding adds what may be done to the external object of a managed resource
// that its parent builds up, by whatever rule that is.
func withBuilding(o objects, by writer, how manner, now time.Time, f Finding) Finding {
	if o.Operation != OperationDelete && resource.IsManaged(o.target()) && buildsUp(o, by, how, now) && !allow(f.cause.external, letsOut) {
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
func injects(o objects, auth *authority, f Finding, is func([]string) bool) bool {
	return slices.ContainsFunc(auth.Policies.For(o.groupKind()), func(p *policy.Policy) bool {
		return p.Covers(f.Change) && opensGate(p, is) && auth.mayInject(p, f) && auth.evaluateFor(p, f).Met
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
func waits(in *inputs, f Finding) Finding {
	if !stays(in.o, in.by, in.how, in.auth, in.outside, in.now, f) {
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
	case succeeded(in.o, in.outside, f):
		l.Text, l.Fix = "", "remove Delete from its managementPolicies first, or approve it"
	case replaces(in.o, in.outside, f.Change):
		l.Text, l.Fix = by+" allows it without these", "allow these, too, or approve it"
	default:
		l.Short = by + " does not allow External Update"
	}

	out := in.unallowed(f.Change, []Lack{l})
	out.alone = true

	return out
}
