// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func TestAPromptNeverBlocksAndIsAnsweredAtOnceOrInAMoment(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ask    func(*Prompt)
		after  time.Duration
	}{
		"Soon":  {"Who waits is answered at once.", (*Prompt).Soon, 0},
		"Later": {"Many that nobody waits for are answered together.", (*Prompt).Later, promptLater},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPrompt()
				for range 5 {
					tc.ask(p)
				}

				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
				start := time.Now()

				for _, src := range Prompted(p, "all") {
					if err := src.Start(t.Context(), queue); err != nil {
						t.Fatal(err)
					}
				}

				if req, _ := queue.Get(); req != "all" || time.Since(start) != tc.after {
					t.Errorf("%s\n%q after %s, want %s", tc.reason, req, time.Since(start), tc.after)
				}

				queue.Done("all")
				synctest.Wait()

				if n := queue.Len(); n > 0 {
					t.Errorf("%s\n%d more", tc.reason, n)
				}

				queue.ShutDown()
			})
		})
	}
}
