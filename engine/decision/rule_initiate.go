// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// byInitiator searches for a policy about the object's kind that lets the
// user start a chain. One that asks for approvals lets nobody.
func byInitiator(o objects, by writer, auth *authority, c change.Change) (Finding, bool) {
	for _, p := range auth.Policies.For(o.groupKind()) {
		if p.RequiredApprovals() == 0 && p.Covers(c) && auth.mightInitiate(p) && auth.evaluate(p).Met && auth.mayInitiate(p) {
			return Finding{Policy: p.Name(), cause: cause{initiator: by.User.Name}}, true
		}
	}

	return Finding{}, false
}

// governed reports whether a policy is about a change of a root: one that says who
// may initiate it, or that nobody may. Deleting is governed where anything of
// the kind is.
func governed(o objects, by writer, auth *authority, enforced enforced, c change.Change) bool {
	if o.Operation == OperationDelete && len(enforced.governing) > 0 {
		return true
	}

	return auth.decidesWho(c) || unnamed(o, by, auth, enforced, c) ||
		o.Operation == OperationDelete && hasInitiators(auth.Policies, o.groupKind())
}

// decidesWho reports whether a policy says who may initiate a change, or that nobody
// may.
func (auth *authority) decidesWho(c change.Change) bool {
	return slices.ContainsFunc(auth.Policies.For(auth.kind), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec()) && p.Touches(c) || auth.forbids(p, c)
	})
}

// forbids reports whether a policy says that nobody may make a change: where it selects
// the object before or after, and its expressions hold or cannot be evaluated, also for
// want of its parameters.
func (auth *authority) forbids(p *policy.Policy, c change.Change) bool {
	if !p.Forbids() || !p.Touches(c) || !p.MaySelect(auth.input()) {
		return false
	}

	v := auth.evaluate(p)

	return v.Met || v.Problem != nil || v.Kind == policy.LackSelector || v.Kind == policy.LackParameter
}

// hasInitiators reports whether a policy says who may initiate changes of objects of
// the kind.
func hasInitiators(policies *policy.Set, kind schema.GroupKind) bool {
	return slices.ContainsFunc(policies.For(kind), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec())
	})
}

// unnamed reports whether a change is of a field of a root of which no policy says
// who may initiate it, though one does of others. Where every Enforcement that is
// about the object leaves such fields alone, none is.
func unnamed(o objects, by writer, auth *authority, enforced enforced, c change.Change) bool {
	if o.Operation != OperationUpdate || c.Metadata() || !o.Root || by.carriesOut() || auth.decidesWho(c) {
		return false
	}

	if len(enforced.governing) > 0 && !slices.ContainsFunc(enforced.governing,
		func(e *enforcement.Enforcement) bool { return !e.IgnoresUnnamed() }) {
		return false
	}

	return hasInitiators(auth.Policies, o.groupKind())
}

// isNamed reports whether a policy about the object's kind names a change.
func isNamed(policies *policy.Set, kind schema.GroupKind, c change.Change) bool {
	return slices.ContainsFunc(policies.For(kind), func(p *policy.Policy) bool { return p.Names(c) })
}
