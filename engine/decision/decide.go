// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

// Decide decides a request. The request and its objects are not modified.
func Decide(req request.Request) Decision {
	// 1. What is known of it, and what of it may be stored.
	in, err := input.Read(req, request.Mutate)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	// 2. What is found of each change, and what is done about it.
	found := rule.Judge(in)
	shadowed := shadow(in, found.Findings)

	// 3. What is taken back, and since when it is.
	left, taken := hold.TakeBack(in, found)
	hold.Withhold(left, found, taken)

	// 4. Why the object is as it is, and what may follow.
	stamped := stamp.Object(left, found, taken)

	// 5. The answer.
	out := answer(left, found, taken, stamped)
	out.Shadow = shadowed

	if in.Objects.Operation != request.OperationDelete {
		out.overrule(left.Objects, left.Writer, left.Earlier, found, taken.Changes, stamped)
	}

	return out
}

// Verify decides a request of which the objects are as they would be stored, after
// every mutating admission, ours included: nothing can be changed any more. Where
// what would be stored is not what is decided, it has a Conflict.
func Verify(req request.Request) Decision {
	in, err := input.Read(req, request.Validate)
	if err != nil {
		return Decision{Problems: []error{err}}
	}

	found := rule.Judge(in)
	taken := &hold.Taken{}
	hold.Withhold(in, found, taken)

	stamped := stamp.Object(in, found, taken)
	out := answer(in, found, taken, stamped)

	if in.Objects.Operation != request.OperationDelete {
		out.Conflict = conflict(in.Objects, found, stamped)
	}

	return out
}
