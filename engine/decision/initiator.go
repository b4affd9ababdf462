// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// byInitiator searches for a policy about the object's kind that lets the
// user start a chain. One that asks for approvals lets nobody.
func (s *subjects) byInitiator(c change.Change) (Finding, bool) {
	for _, p := range s.Policies.For(s.groupKind()) {
		if p.RequiredApprovals() == 0 && p.Covers(c) && s.mightInitiate(p) && s.evaluate(p).Met && s.mayInitiate(p) {
			return Finding{Policy: p.Name(), cause: cause{initiator: s.User.Name}}, true
		}
	}

	return Finding{}, false
}

// governed reports whether a policy is about a change of a root: one that says who
// may initiate it, or that nobody may. Deleting is governed where anything of
// the kind is.
func (s *subjects) governed(c change.Change) bool {
	if s.Operation == OperationDelete && len(s.governing) > 0 {
		return true
	}

	return s.decidesWho(c) || s.unnamed(c) || s.Operation == OperationDelete && s.hasInitiators()
}

// decidesWho reports whether a policy says who may initiate a change, or that nobody
// may.
func (s *subjects) decidesWho(c change.Change) bool {
	return slices.ContainsFunc(s.Policies.For(s.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec()) && p.Touches(c) || s.forbids(p, c)
	})
}

// forbids reports whether a policy says that nobody may make a change: where it selects
// the object before or after, and its expressions hold or cannot be evaluated, also for
// want of its parameters.
func (s *subjects) forbids(p *policy.Policy, c change.Change) bool {
	if !p.Forbids() || !p.Touches(c) || !p.MaySelect(s.input()) {
		return false
	}

	v := s.evaluate(p)

	return v.Met || v.Problem != nil || v.Kind == policy.LackSelector || v.Kind == policy.LackParameter
}

// hasInitiators reports whether a policy says who may initiate changes of objects of
// the kind.
func (s *subjects) hasInitiators() bool {
	return slices.ContainsFunc(s.Policies.For(s.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec())
	})
}

// unnamed reports whether a change is of a field of a root of which no policy says
// who may initiate it, though one does of others. Where every Enforcement that is
// about the object leaves such fields alone, none is.
func (s *subjects) unnamed(c change.Change) bool {
	if s.Operation != OperationUpdate || c.Metadata() || !s.root() || s.carriesOut() || s.decidesWho(c) {
		return false
	}

	if len(s.governing) > 0 && !slices.ContainsFunc(s.governing, func(e *enforcement.Enforcement) bool { return !e.IgnoresUnnamed() }) {
		return false
	}

	return s.hasInitiators()
}

// named reports whether a policy about the object's kind names a change.
func (s *subjects) named(c change.Change) bool {
	return slices.ContainsFunc(s.Policies.For(s.groupKind()), func(p *policy.Policy) bool { return p.Names(c) })
}
