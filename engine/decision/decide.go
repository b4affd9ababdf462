// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

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
		out.overrule(left.o, left.by, left.earlier, found, stamped)
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
