// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// envRuns names the environment variable that says how many plays there are;
// world.EnvSeed is the seed of the first one, the others' follow.
const envRuns = "KAUSALITY_RUNS"

const (
	// runs is how many plays there are by default, and atOnce how many of them at
	// one time.
	runs   = 250
	atOnce = 40
	// few and fewSeed are those of make test: it plays the same each time.
	few     = 40
	fewSeed = 1000
	// tolerated is how many may fail before the rest is left out.
	tolerated = 3
)

// flavours are what becomes of edits that nobody may make, in different plays.
// What is stored, because nothing is enforced, is kept from the external system
// all the same.
func flavours() []string { return []string{deny, hold, stored} }

// TestAtRandomNothingHappensOutsideThatIsNotAllowedAndNothingIsLost plays many
// servers at a time, while processes are killed. Each is changed, troubled,
// disturbed and in the end deleted, at random. No call may reach the external
// system without an allowance, or with values that is not allowed who may; and
// what was asked for last is there in the end, with the gate closed and nothing
// left over.
//
// KAUSALITY_SEED=n plays the server of seed n and those that follow it, of which
// there are KAUSALITY_RUNS.
func TestAtRandomNothingHappensOutsideThatIsNotAllowedAndNothingIsLost(t *testing.T) {
	seed, count := world.Number(t, world.EnvSeed, world.Sample(fewSeed, rand.Uint64()>>32)), world.Number(t, envRuns, world.Sample(few, runs))
	t.Logf("%s=%d %s=%d", world.EnvSeed, seed, envRuns, count)

	c := newCast(t)
	seen := follow(t.Context(), c.admin)
	disorder := &chaos{rng: rand.New(rand.NewPCG(seed, 1)), kills: map[string]int{}}

	// 1. Processes come and go for as long as it lasts.
	ctx, calm := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- disorder.run(ctx) }()

	// 2. All plays are played.
	total := playAll(t, c, seen, seed, count)

	calm()

	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	// 3. All of it happened.
	t.Logf("%d plays, %d changes that reached the external system, of which %d failed there; killed %v", count, total.calls, total.failed, disorder.kills)

	if t.Failed() {
		t.Log(strings.Join(disorder.diary, "\n"))
	}
}

// tally counts what happened.
type tally struct {
	mu            sync.Mutex
	calls, failed int
	plays, wrong  int
	longest       time.Duration
}

// playAll plays as many servers as there are to be.
func playAll(t *testing.T, c cast, seen *history, seed, count uint64) *tally {
	t.Helper()

	var (
		group errgroup.Group
		total tally
	)

	group.SetLimit(atOnce)

	start := time.Now()

	for i := range count {
		if total.wrongs() > tolerated {
			break
		}

		group.Go(func() error {
			p := newPlay(c, seen, seed+i, flavours())
			begin := time.Now()

			err := p.run(t.Context())
			if err != nil {
				t.Error(p.report(err))
			}

			total.add(p, time.Since(begin), err)

			return nil
		})
	}

	_ = group.Wait()

	t.Logf("%d plays in %s, the longest in %s", total.plays, time.Since(start).Round(time.Second), total.longest.Round(time.Second))

	return &total
}

// add counts a play.
func (t *tally) add(p *play, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.plays++
	t.longest = max(t.longest, took)

	for _, c := range outside.Changes(p.name) {
		t.calls++

		if c.Error != "" {
			t.failed++
		}
	}

	if err != nil {
		t.wrong++
	} else {
		p.seen.forget(p.name)
	}
}

func (t *tally) wrongs() int {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.wrong
}
