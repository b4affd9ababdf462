// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

const (
	// busy is how many stalls there are of each kind of load, and pace how often
	// somebody does something to one of them. It is some 50 seconds until it is the
	// turn of the same again: people are no faster, and Crossplane's circuit
	// breaker counts on that.
	busy = 12
	pace = 4 * time.Second
)

// load is one thing that somebody keeps doing to some stalls.
type load struct {
	// name begins the names of these stalls.
	name string
	// do does it to one of them, for the nth time, and seen checks what comes of
	// that.
	do, seen func(ctx context.Context, stall string, n int) error
}

func (l load) stalls() []string { return named(l.name, busy) }

// named are names that begin alike.
func named(prefix string, n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprint(prefix, "-", i))
	}

	return out
}

// loads are an allowed change, one that a window allows, and one that is held.
func (m market) loads(t *testing.T) []load {
	t.Helper()

	text := func(prefix string, n int) string { return fmt.Sprint(prefix, "-", n) }

	return []load{
		{
			name: "edited",
			do: func(ctx context.Context, stall string, n int) error {
				return m.set(ctx, m.hans, stall, "size", text("size", n))
			},
			seen: func(ctx context.Context, stall string, n int) error {
				return m.shows(stall, "size", text("size", n))(ctx)
			},
		},
		{
			name: rolled,
			do:   func(ctx context.Context, stall string, n int) error { return m.compose(ctx, t, stall, text("v", n)) },
			seen: func(ctx context.Context, stall string, n int) error {
				return m.shows(stall, "version", text("v", n))(ctx)
			},
		},
		{
			name: "held",
			do: func(ctx context.Context, stall string, n int) error {
				return m.set(ctx, m.admin, stall, "note", text("note", n))
			},
			seen: func(ctx context.Context, stall string, n int) error {
				return m.says(stall, func(_ *unstructured.Unstructured, message string) bool {
					return strings.Contains(message, " 1 change held") && strings.Contains(message, "→ "+text("note", n)+")")
				})(ctx)
			},
		},
	}
}

// work puts on all loads at once, until the context ends, and returns how often
// each did something.
func work(ctx context.Context, loads []load, seed uint64) (map[string]int, error) {
	var group errgroup.Group

	times := make([]int, len(loads))

	for i, l := range loads {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))

		group.Go(func() (err error) {
			times[i], err = l.work(ctx, rng)

			return err
		})
	}

	err := group.Wait()

	out := map[string]int{}
	for i, l := range loads {
		out[l.name] = times[i]
	}

	return out, err
}

// work goes round the stalls in random order, one at each pace.
func (l load) work(ctx context.Context, rng *rand.Rand) (int, error) {
	tick := time.NewTicker(pace)
	defer tick.Stop()

	stalls := l.stalls()

	for n := 0; ; n++ {
		if n%len(stalls) == 0 {
			rng.Shuffle(len(stalls), func(i, j int) { stalls[i], stalls[j] = stalls[j], stalls[i] })
		}

		select {
		case <-ctx.Done():
			return n, nil
		case <-tick.C:
		}

		if err := l.once(ctx, stalls[n%len(stalls)], n); err != nil {
			return n, err
		}
	}
}

// once does it, and waits for what comes of that. What is begun is seen to its
// end. A connection to a manager that is gone may be used once more.
func (l load) once(ctx context.Context, stall string, n int) error {
	ctx = context.WithoutCancel(ctx)

	if err := scenario.Eventually(ctx, "a change of "+stall, func(ctx context.Context) error { return l.do(ctx, stall, n) }); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "what comes of a change of "+stall, func(ctx context.Context) error { return l.seen(ctx, stall, n) })
}
