// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy compiles AllowancePolicies once and answers which of them a
// change matches. Policies are indexed by the kind they match, so that those
// about other kinds cost nothing. It also compiles AllowanceBindings, and says who
// may initiate a change and who may carry it on.
//
// Its files:
//   - compile.go: compilation of an AllowancePolicy, with the errors of its fields ([Compile]); field paths, selectors, permissions
//   - condition.go: cel and matchConditions: compilation, the message of a false one, what each reads
//   - parameter.go: paramKind and paramRef: compilation, evaluation of the conditions with each parameter
//   - gate.go: gate settings: settle, maxOpen, whenOverdue, closeWhen ([CompileGate])
//   - cache.go: compilation once for each content; policies that do not compile are left out ([Cache.Set])
//   - set.go: the policies in force about a kind ([Set.For]), broken ones, whether any reads the parent
//   - kind.go: kinds of spec.match ([IsAbout], [KindsOf])
//   - match.go: whether a change is covered ([Policy.Covers]), selectors and conditions hold ([Policy.Evaluate]); reasons if not; capture
//   - selector.go: objectSelector on both old and new object; labels that selectors read
//   - allow.go: spec.allow: allowed changes of children ([Policy.Allows]), External actions; fields still covered ([Policy.About])
//   - subject.go: users and subjects: who initiates ([MayInitiate]), who carries a change on ([MayExercise]); people and machines
//   - initiators.go: whether anybody may initiate by a policy ([HasInitiators]); policies that forbid; bindingMode
//   - permission.go: subjects of kind Permission, as RBAC verbs ([VerbsOf])
//   - approval.go: how many approvals a policy asks for ([RequiredApprovals])
//   - binding.go: AllowanceBindings: compilation ([CompileBinding]), evaluation in a budget, lookup by policy and namespace ([Bindings])
//   - result.go: outcome of every selector and condition, for explanations ([Policy.Results])
//   - unread.go: unreadable parameters: errors for now, errors for good ([Unread])
//   - shadow.go: Shadow mode of policies and conditions; the Set with all of it in force ([Set.Shadow])
//   - now.go: expressions and policies that read the time ([ReadsNow])
//   - written.go: all CEL expressions of spec.match, each with its path ([Expressions])
//   - label.go: labels of policies and windows, for the composition function's selectors ([LabelsOfMatch], [LabelsOfServiceAccount])
package policy
