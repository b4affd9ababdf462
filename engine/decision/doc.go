// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides whether a change of an object was asked for, and by
// whom, and stamps the object with why it is as it is and with what may follow.
//
// [Decide] takes five steps, each of which gets values and returns values:
//
//   - read: what the request and the annotations of its objects say (inputs.go), and what of the
//     new object may be stored at all (proposal.go);
//   - judge: a finding on each change that is not exempt (exempt.go), by the first of the rules that
//     allows it (rules.go, one rule_*.go each), or with what it lacks (lack.go, nearmiss.go), and the
//     action on what is not allowed (action.go);
//   - hold: what is put back (hold.go), and since when it is held (withheld.go);
//   - stamp: trace, allowances and the other records (stamp.go), and the gate (initialgate.go);
//   - answer: what is to be done, and what is said (answer.go, outcome.go, warning.go).
//
// A function gets the parts of the inputs that it reads, and nothing else: the objects, who writes, what
// the parent carries (above.go), who may initiate by policies (authority.go), and others.
//
// [Verify] does the same for an object that can no longer be changed, and compares.
package decision
