// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides whether a change of an object was asked for, and by
// whom, and stamps the object with why it is as it is and with what may follow.
//
// [Decide] takes five steps, a package each, of which each gets values and returns values:
//
//   - input: what the request and the annotations of its objects say, and what of the new object may be stored at all;
//   - rule: a finding on each change that nobody is exempt from asking for, by the first of the rules that allows it, or
//     with what it lacks (package lack); and the action on what is not allowed;
//   - hold: what is taken back, and since when it is held;
//   - stamp: trace, allowances and the other records, and the gate;
//   - decision: what is to be done, and what is said (answer.go, outcome.go, warning.go).
//
// Below them are request (what is asked), finding (what is found of a change), authority (who may) and grant (what
// allowances and approvals let through). A function gets the parts of the inputs that it reads, and nothing else.
//
// [Verify] does the same for an object that can no longer be changed, and compares. Package explain says why, for people.
package decision
