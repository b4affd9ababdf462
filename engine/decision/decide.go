// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Decide decides a request. The request and its objects are not modified.
func Decide(req Request) Decision {
	// 1. What is known of it, and what of it may be stored.
	in, err := read(req, false)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	// 2. What is found of each change, and what is done about it.
	found := judge(in)
	shadowed := shadow(in, found.findings)

	// 3. What is taken back, and since when it is.
	left := hold(in, found)
	withhold(left, found)

	// 4. Why the object is as it is, and what may follow.
	stamped := stampObject(left, found)

	// 5. The answer.
	out := answer(left, found, stamped)
	out.Shadow = shadowed

	if in.o.Operation != OperationDelete {
		out.overrule(left, found, stamped)
	}

	return out
}

// Verify decides a request of which the objects are as they would be stored, after
// every mutating admission, ours included: nothing can be changed any more. Where
// what would be stored is not what is decided, it has a Conflict.
func Verify(req Request) Decision {
	in, err := read(req, true)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	found := judge(in)
	withhold(in, found)

	stamped := stampObject(in, found)
	out := answer(in, found, stamped)

	if in.o.Operation != OperationDelete {
		out.Conflict = conflict(in.o, found, stamped)
	}

	return out
}

// answer is the decision, once all is stamped.
func answer(in *inputs, j *judged, s *stamped) Decision {
	out := Decision{
		Findings: j.findings, Action: j.action, Object: s.object, Held: j.held, Refusal: s.refusal,
		Withheld: j.next, Attestations: s.attestations, Kept: s.kept, Overruled: s.overruled,
		Warnings: slices.Concat(in.proposal.warnings, consequences(in.o, in.earlier, j)),
		Problems: in.problems.list, Costs: in.auth.ledger.costs,
	}

	for _, e := range in.enforced.governing {
		out.Enforcements = append(out.Enforcements, e.Name())
		out.governing = append(out.governing, sourceOfEnforcement(e))
	}

	slices.Sort(out.Enforcements)
	slices.SortFunc(out.governing, compareSources)

	if refuses(j) {
		out.title = in.o.title() + ": "
	}

	return out
}

// refuses reports whether an unallowed change is to be refused.
func refuses(j *judged) bool { return j.action == v1alpha1.ActionDeny && !j.allowed() }
