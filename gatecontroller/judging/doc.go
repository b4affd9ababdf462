// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judging puts requests of the manager's own to the engine, with all that the
// webhook decides by, but for the cluster's authorizer. It has what logs and metrics report of decisions: by which policies,
// windows and Enforcements they were made, and which expressions failed.
//
// Its files:
//   - judge.go: a request completed and decided: for deletions by the garbage collector and approved edits ([Judge.Decide])
//   - source.go: policies, windows and initiators of allowances and decisions, for the log ([Given], [Judged])
//   - expression.go: the metric of failed CEL expressions
package judging
