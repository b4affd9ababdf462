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

const (
	// approvalRuns is how many plays there are by default, and approvalsAtOnce how many of them at one
	// time.
	approvalRuns    = 20
	approvalsAtOnce = 10
	// fewApprovals is how many make test plays.
	fewApprovals = 6
)

// TestAtRandomAnApprovalIsUsedOnceForItsValueAndNeverLost plays racks, while processes are killed. People
// ask for what they may and may not, new releases of Compositions ask for more, and others approve
// that, reject it, withdraw what they have decided, approve what was listed once, or what they ask
// for themselves. Of each value that reaches the external system, by the log of its calls, somebody
// has asked for it who may, or a ChangeApproval, by the API server's audit log, was made of that very
// value of that very object: one for each time. And where an approval stands, and what it is about
// was asked for ever since, it is outside once all is quiet.
//
// KAUSALITY_SEED=n plays the rack of seed n and those that follow it, of which there are
// KAUSALITY_RUNS.
func TestAtRandomAnApprovalIsUsedOnceForItsValueAndNeverLost(t *testing.T) {
	seed, count := world.Number(t, world.EnvSeed, world.Sample(fewSeed, rand.Uint64()>>32)), world.Number(t, envRuns, world.Sample(fewApprovals, approvalRuns))
	t.Logf("%s=%d %s=%d", world.EnvSeed, seed, envRuns, count)

	d := newDesk(t)
	disorder := &chaos{rng: rand.New(rand.NewPCG(seed, 3)), kills: map[string]int{}, also: []string{processCrossplane, processFunction}}

	// 1. Processes come and go for as long as it lasts.
	ctx, calm := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- disorder.run(ctx) }()

	// 2. All plays are played.
	var (
		group errgroup.Group
		total approvalTally
		start = time.Now()
	)

	group.SetLimit(approvalsAtOnce)

	for i := range count {
		if total.wrongs() > tolerated {
			break
		}

		group.Go(func() error {
			p := newRackPlay(d, seed+i)
			begin := time.Now()

			err := p.run(t.Context())
			if err != nil {
				t.Error(p.report(err))
			} else if i == 0 {
				t.Logf("one play:\n  %s", strings.Join(p.diary, "\n  "))
			}

			total.add(p, time.Since(begin), err)

			return nil
		})
	}

	_ = group.Wait()

	calm()
	world.Must(t, <-ended)

	// 3. All of it happened.
	t.Logf("%d plays in %s, the longest in %s: %d ChangeApprovals, of which %d rejected something, %d were withdrawn, and %d were made again in vain; "+
		"%d calls that changed something outside, %d of them for an approval; what the API server had not logged when it was killed: %d; killed %v",
		total.plays, time.Since(start).Round(time.Second), total.longest.Round(time.Second), total.verdicts, total.rejected, total.withdrawn, total.void,
		total.calls, total.approved, total.unlogged, disorder.kills)

	if total.approved == 0 {
		t.Error("nothing was approved")
	}

	if t.Failed() {
		t.Log(strings.Join(disorder.diary, "\n"))
	}
}

// approvalTally counts what happened.
type approvalTally struct {
	mu                                  sync.Mutex
	plays, wrong                        int
	verdicts, rejected, withdrawn, void int
	calls, approved, unlogged           int
	longest                             time.Duration
}

// add counts a play.
func (t *approvalTally) add(p *rackPlay, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.plays++
	t.longest = max(t.longest, took)
	t.verdicts += len(p.book.verdicts)
	t.calls += len(p.book.calls)
	t.unlogged += p.unlogged

	if err != nil {
		t.wrong++
	}

	for _, v := range p.book.verdicts {
		if v.rejects {
			t.rejected++
		}

		if !v.ended.IsZero() {
			t.withdrawn++
		}

		if v.void {
			t.void++
		}
	}

	for _, c := range p.book.calls {
		if len(c.approvals) > 0 {
			t.approved++
		}
	}
}

func (t *approvalTally) wrongs() int {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.wrong
}
