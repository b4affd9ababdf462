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
package decisionlog
