// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// byInitiator looks for a policy about the object's own kind that lets the
// user start a chain.
func (j *judge) byInitiator(c change.Change) (Finding, bool) {
	for _, p := range j.Policies.For(j.groupKind()) {
		if p.Names(c) && policy.MayInitiate(p.Spec().Subjects, j.User) && j.evaluate(p).Met {
			return Finding{Policy: p.Name(), cause: cause{initiator: j.User.Name}}, true
		}
	}

	return Finding{}, false
}

// governed reports whether a policy is about a change of a root: one that says who
// may initiate it, or that nobody may. Deleting is governed where anything of
// the kind is.
func (j *judge) governed(c change.Change) bool {
	if j.Operation == OperationDelete && len(j.governing) > 0 {
		return true
	}

	return j.decidesWho(c) || j.unnamed(c) || j.Operation == OperationDelete && j.hasInitiators()
}

// decidesWho reports whether a policy says who may initiate a change, or that nobody
// may.
func (j *judge) decidesWho(c change.Change) bool {
	return slices.ContainsFunc(j.Policies.For(j.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec().Subjects) && p.Names(c) || j.forbids(p, c)
	})
}

// forbids reports whether a policy says that nobody may make a change: where it selects
// the object before or after, and its expressions hold or cannot be evaluated.
func (j *judge) forbids(p *policy.Policy, c change.Change) bool {
	if !p.Forbids() || !p.Names(c) || !p.MaySelect(j.input()) {
		return false
	}

	v := j.evaluate(p)

	return v.Met || v.Problem != nil || v.Lack == policy.LackSelector
}

// hasInitiators reports whether a policy says who may initiate changes of objects of
// the kind.
func (j *judge) hasInitiators() bool {
	return slices.ContainsFunc(j.Policies.For(j.groupKind()), func(p *policy.Policy) bool {
		return policy.HasInitiators(p.Spec().Subjects)
	})
}

// unnamed reports whether a change is of a field of a root of which no policy says
// who may initiate it, though one does of others. Where every Enforcement that is
// about the object leaves such fields alone, none is.
func (j *judge) unnamed(c change.Change) bool {
	if j.Operation != OperationUpdate || c.Metadata() || !j.root() || j.carriesOut() || j.decidesWho(c) {
		return false
	}

	if len(j.governing) > 0 && !slices.ContainsFunc(j.governing, func(e *enforcement.Enforcement) bool { return !e.IgnoresUnnamed() }) {
		return false
	}

	return j.hasInitiators()
}

// named reports whether a policy about the object's kind names a change.
func (j *judge) named(c change.Change) bool {
	return slices.ContainsFunc(j.Policies.For(j.groupKind()), func(p *policy.Policy) bool { return p.Names(c) })
}
