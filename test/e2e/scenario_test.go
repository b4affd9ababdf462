// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/demo/session"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

// drawn is held while the story is played that docs/demo.svg shows, and by tests with other policies about its kinds:
// refusals name them.
var drawn sync.Mutex

// The demo plays the same story, and has drawn a picture of it.
func TestAnAskedForChangeReachesTheExternalObjectAndNoOtherDoes(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	drawn.Lock()
	defer drawn.Unlock()

	told := session.New(t.Output(), false, time.Now)

	s, err := scenario.New(running, "../../examples", told)
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range s.Steps() {
		told.Begin(step.Title)

		// Steps build on each other.
		if !t.Run(step.Title, func(t *testing.T) {
			if err := step.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) {
			return
		}
	}

	picture, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}

	if err := session.Compare(string(picture), session.Highlights(told.Blocks())); err != nil {
		t.Errorf("docs/demo.svg: %v: run make record", err)
	}
}
