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
//
// Its files:
//   - decide.go: the steps of a decision, for the mutating webhook and the function ([Decide]) and for the validating webhook ([Verify])
//   - answer.go: the content of a decision ([Decision]): findings, action, object to store, held changes; texts of these
//   - outcome.go: allow, hold, deny or retry, with the reason ([Decision.Answer]); the one word for metrics and logs ([Decision.Outcome])
//   - verify.go: the retry after another webhook changed the object
//   - forged.go: kausality.io annotations that a person forged or a tool copied
//   - warning.go: warnings in kubectl and the text of a refusal
//   - sources.go: the policies and Enforcements behind a decision, with generations; the causes of a refusal, one for each field ([Cause])
//   - shadow.go: changes with another result if policies and conditions in Shadow mode were enforced; their text
//   - failurepolicy.go: refusal while nothing can be decided, such as without the parent, by the failurePolicy ([MustDecide])
//   - status.go: outdated conditions that Crossplane writes to an XR, which would run the pipeline again and again
package decision
