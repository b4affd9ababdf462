// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Decide decides a request. The request and its objects are not modified.
func Decide(req Request) Decision {
	// 1. What is known of it.
	f, err := gather(req, false)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	// 2. What is found of each change, and what is done about it.
	j := newJudge(f).judgeAll()
	shadowed := j.shadowed(j.findings)

	// 3. What is taken back.
	h := j.hold().withhold()

	// 4. Why the object is as it is, and what may follow.
	s := h.stamp()

	out := s.decision()
	if f.Operation != OperationDelete {
		out.overrule(reviewer{s})
	}

	out.Shadow = shadowed

	return out
}

// Verify decides a request of which the objects are as they would be stored, after
// every mutating admission, ours included: nothing can be changed any more. Where
// what would be stored is not what is decided, it has a Conflict.
func Verify(req Request) Decision {
	f, err := gather(req, true)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	s := newJudge(f).judgeAll().withhold().stamp()

	out := s.decision()
	if f.Operation != OperationDelete {
		out.Conflict = reviewer{s}.conflict()
	}

	return out
}

// decision is the answer, once all is stamped.
func (s *stamper) decision() Decision {
	out := Decision{
		Findings: s.findings, Action: s.action, Object: s.object, Held: s.held, Refusal: s.refusal,
		Withheld: s.next, Attestations: s.attestations, Kept: s.kept, Overruled: s.overruled,
		Warnings: slices.Concat(s.warnings, s.consequences()),
	}

	for _, e := range s.governing {
		out.Enforcements = append(out.Enforcements, e.Name())
		out.governing = append(out.governing, sourceOfEnforcement(e))
	}

	slices.Sort(out.Enforcements)
	slices.SortFunc(out.governing, compareSources)

	if s.refuses() {
		out.title = s.title() + ": "
	}

	out.Problems, out.Costs = s.problems.list, s.costs.list

	return out
}

// refuses reports whether an unallowed change is to be refused.
func (g *judged) refuses() bool { return g.action == v1alpha1.ActionDeny && !g.allowed() }
