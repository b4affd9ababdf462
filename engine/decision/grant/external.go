// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A gate that opens for one change lets out all of the spec. A change that is
// allowed without External Update must not leave with another one: it is held.

// GoesOut reports whether a change is of what a provider makes of the external
// object.
func GoesOut(c change.Change) bool {
	return request.Under(c, "spec", "forProvider") || request.Under(c, "spec", "initProvider")
}

// Stays reports whether an allowed change is for the managed resource alone, and
// not for what is behind its gate.
func Stays(
	o request.Objects, by request.Writer, how request.Manner, auth *authority.Authority, outside request.External, now time.Time,
	f finding.Finding,
) bool {
	if Succeeded(o, outside, f) {
		return true
	}

	if Replaces(o, outside, f.Change) {
		return !allow(f.Cause.External, managed.MakesAnew) && !injects(o, auth, f, managed.MakesAnew)
	}

	return GoesOut(f.Change) && outside.Gated && !request.BuildsUp(o, by, how, now) && !allow(f.Cause.External, LetsOut) &&
		!injects(o, auth, f, LetsOut)
}

// WithBuilding adds what may be done to the external object of a managed resource
// that its parent builds up, by whatever rule that is.
func WithBuilding(o request.Objects, by request.Writer, how request.Manner, now time.Time, f finding.Finding) finding.Finding {
	if o.Operation != request.OperationDelete && resource.IsManaged(o.Target()) && request.BuildsUp(o, by, how, now) &&
		!allow(f.Cause.External, LetsOut) {
		f.Cause.External = allowance.Merge(f.Cause.External, ImplicitExternal())
	}

	return f
}

// ImplicitExternal is what a parent that is built up may do to external objects.
func ImplicitExternal() []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionCreate, management.ActionUpdate},
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceCreation},
	}}
}

// allow reports whether one of some allowances is for External actions of a kind.
func allow(list []v1alpha1.Allowance, is func([]string) bool) bool {
	return slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool { return allowance.External(a) && is(a.Mutations) })
}

// LetsOut reports whether actions make of the external object what the spec says: by
// an update, or by making it anew.
func LetsOut(actions []string) bool {
	return slices.Contains(management.Acting(actions), management.ActionUpdate) || managed.MakesAnew(actions)
}

// injects reports whether a policy about the object's kind gives External actions of a kind for an allowed change.
func injects(o request.Objects, auth *authority.Authority, f finding.Finding, is func([]string) bool) bool {
	return slices.ContainsFunc(auth.Policies.For(o.GroupKind()), func(p *policy.Policy) bool {
		return p.Covers(f.Change) && OpensGate(p, is) && auth.MayInject(p, f) && auth.EvaluateFor(p, f).Met
	})
}

// OpensGate reports whether a policy allows External actions of a kind.
func OpensGate(p *policy.Policy, is func([]string) bool) bool {
	return slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
		return a.Relation == v1alpha1.RelationExternal && is(a.Mutations)
	})
}

// Replaces reports whether a change has a managed resource behind a gate stand for another external object.
func Replaces(o request.Objects, outside request.External, c change.Change) bool {
	return outside.Gated && o.Old != nil && o.New != nil && c.Field != v1alpha1.MutationDelete &&
		identity.Changes(o.Old, o.New, c.Path, outside.Identity) && managed.Stands(o.Old)
}

// Succeeded reports whether a deletion would take an external object from another composed resource, which is to stand for it. Only
// who approves exactly that has seen it.
func Succeeded(o request.Objects, outside request.External, found finding.Finding) bool {
	return o.Operation == request.OperationDelete && outside.Successor != "" && found.Approval == "" && managed.Stands(o.Old) &&
		managed.Kept(o.Old) == "" &&
		!managed.Orphans(o.Old)
}

// TakesFromSuccessor names what it takes.
func TakesFromSuccessor(o request.Objects, outside request.External) string {
	return fmt.Sprintf("it would delete %s, which composed resource %q is to represent", stoodFor(o, outside), outside.Successor)
}

// LeavesBehind names the external object that such a change leaves behind.
func LeavesBehind(o request.Objects, outside request.External) string {
	return fmt.Sprintf("it would orphan %s, which needs External Create and Delete", stoodFor(o, outside))
}

// stoodFor names the external object that the managed resource has stood for.
func stoodFor(o request.Objects, outside request.External) string {
	return identity.Describe(o.Old, identity.Of(o.Old, outside.Identity))
}
