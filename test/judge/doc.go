// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge decides again what was decided at the baseline, and names each decision that is another
// one now. A change of the code that must not change decisions is held to it: make judge.
//
// # What is decided again
//
// The file baseline names a commit. Two files have what was decided there:
//
//	corpus.jsonl.gz  the decision of each case of test/corpus, by its name. The case itself is that of the
//	                 tree: it is decided again as it is now
//	log.jsonl.gz     decisions that end-to-end tests, examples and random plays made on the real control
//	                 plane, each with all that it was made by: see internal/decisionlog
//
// Both are decided again by the engine of the tree, without a stack, the network or a cache. Compared are
// the outcome, the action, and of each change the verdict, the rule, the policy, the initiator and the
// reasons; the held changes; the annotations and fields that are written; the plan of a gate. Messages are
// not: test/corpus compares those.
//
// # What may differ
//
// Each difference has to match an entry of changed.yaml, see [Changed]. An entry without a difference is an
// error, too.
//
// # A new baseline
//
// A log is recorded by tests with KAUSALITY_DECISIONS=DIR. From it, test/judge/record makes the files:
//
//	mkdir -p /tmp/decisions
//	KAUSALITY_DECISIONS=/tmp/decisions go test -tags stack ./test/e2e ./test/examples ./test/random -count=1
//	go run ./test/judge/record /tmp/decisions
package judge
