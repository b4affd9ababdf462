// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check lints AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements together, without a
// cluster: besides what package typecheck finds of each, what admission refuses, duplicates, and chains whose next link
// is missing.
//
// Its files:
//   - lint.go: all checks, in order ([Lint]); their [Input]; known kinds
//   - admit.go: refusals and warnings of admission
//   - types.go: findings of package typecheck; paths and verbs of windows; kinds without a schema
//   - binding.go: bindings that grant nothing, also for their Ready condition ([Unbound]); missing bindings
//   - over.go: windows and exceptions that have ended
//   - same.go: two objects of one name; policies repeated or covered by another one
//   - chain.go: allowed changes with no next policy; kinds that are not composed; children without any change allowed after creation
//   - exercise.go: whether Crossplane, or anybody, may carry a change on
//   - external.go: missing or useless External actions of managed resources
//   - approval.go: Enforcements that refuse edits before anybody can approve
//   - constant.go: conditions that read nothing
package check
