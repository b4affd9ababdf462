// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus holds scenarios: who changes what under which policies, and
// what is decided. One reader feeds them to the engine and to every entry
// point, so that all of them are shown to decide the same.
//
// Their format is that of policy tests, which anybody can write: see
// internal/policytest. What the corpus has besides: it is compared exactly
// (defaults.yaml says so, too), and no two scenarios give the same reason.
//
// go test ./test/corpus -update writes the decisions of the scenarios anew, -update-texts their
// messages; neither writes what the other does. Read what changed. kubectl kausality test
// test/corpus checks the same.
package corpus
