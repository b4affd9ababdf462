// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decisionlog writes down decisions, each with all that it was made by, and reads
// them again, so that what was decided can be decided once more: by the same policies, or
// by others.
//
// A log is lines of JSON. A line is a [Decision], an [InForce], which has the policies that
// decisions refer to by its digest and comes before them in each file, or a [Dropped], which
// says how many decisions were left out. Who reads a log skips lines of other kinds.
//
// The package is pure: see internal/logfile for what writes files.
//
// Its files:
//   - record.go: the fields of each line, as documented in the reference ([Decision], [InForce])
//   - encode.go: a decision as a line ([Encoder.Encode])
//   - answers.go: parameters and access reviews that a decision asked for ([Answers]); encoded, and answered again in a replay
//   - masking.go: credentials as (masked), with a number for each further value
//   - older.go: the same for annotations of earlier versions
//   - outcome.go: what was decided: findings, reasons, warnings ([OutcomeOf])
//   - inforce.go: policies, bindings, windows and Enforcements as one line with a digest
//   - decode.go: a recorded request, ready to be decided again ([Decision.Request]); answers that the record does not have ([Unknown])
package decisionlog
