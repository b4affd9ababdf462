// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides whether a change of an object was asked for, and by
// whom, and stamps the object with why it is as it is and with what may follow.
//
// [Decide] takes five steps, each of which takes the values that the one before
// returns:
//
//   - the facts: what the request and the annotations of its objects say (facts.go), and
//     the proposal, the new object without what its writer may not write (proposal.go);
//   - a finding on each change (judge.go), by the first of the rules that allows it
//     (rules.go), or with what it would take (explain.go, miss.go);
//   - the action on what is not allowed (judged.go);
//   - what is taken back, where that is to be held (hold.go);
//   - the stamp: trace, allowances and the other records (stamp.go).
//
// [Verify] does the same for an object that can no longer be changed, and compares.
package decision
