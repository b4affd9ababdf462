// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge decides again what was decided at the baseline, and names each decision that is another
// one now. A change of the code that must not change decisions is held to it: make judge.
//
// # What is decided again
//
// The file baseline names a commit, and has the sums of two files. These have what was decided there:
//
//	corpus.jsonl.gz  the decision of each case of test/corpus, by its name. The case itself is that of the
//	                 tree: it is decided again as it is now
//	log.jsonl.gz     decisions that end-to-end tests, examples and random plays made on the real control
//	                 plane, each with all that it was made by: see internal/decisionlog
//
// Both are decided again by the engine of the tree, without a stack, the network or a cache. Compared are
// the outcome, the action, and of each change the verdict, the rule, the policy, the initiator and the
// reasons; the held changes; the annotations and fields that are written; the plan of a gate, for cases. Messages are
// not: test/corpus compares those, and with them that there is one.
//
// Not judged, but tested where they are: what else is told of a decision (kept, overruled, attested, costs; what a gate
// waits for); whether what is stored is what was decided (decision.Verify; the log has some of these); explanations;
// whole runs of a pipeline, approvals and what is pending; configurations of admission. A case that is newer than the
// baseline is judged by the corpus alone: the test names it.
//
// # What may differ
//
// Each difference has to match an entry of changed.yaml, see [Changed]. An entry with more differences than it says, or
// fewer, is an error, too.
//
// # A new baseline
//
// A log is recorded by tests with KAUSALITY_DECISIONS=DIR. From it, test/judge/record makes the files:
//
//	mkdir -p /tmp/decisions
//	KAUSALITY_DECISIONS=/tmp/decisions go test -tags stack ./test/e2e ./test/examples ./test/random -count=1
//	go run ./test/judge/record /tmp/decisions
package judge
