// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

// teller writes what happens into the test's log.
type teller struct{ t *testing.T }

func (n teller) Sayf(format string, args ...any) { n.t.Logf(format, args...) }

func (n teller) Show(text string) { n.t.Log("\n" + text) }

func TestAnAskedForChangeReachesTheExternalObjectAndNoOtherDoes(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	s, err := scenario.New(running, "../../examples", teller{t})
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range s.Steps() {
		// Steps build on each other.
		if !t.Run(step.Title, func(t *testing.T) {
			if err := step.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) {
			return
		}
	}
}
