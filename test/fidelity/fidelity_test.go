// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// What the environment says about the randomised test: how many objects there are,
// and what names of files in testdata/kinds must contain; world.EnvSeed is the seed
// of the first one, the others' follow.
const (
	envObjects = "KAUSALITY_OBJECTS"
	envKind    = "KAUSALITY_KIND"
)

const (
	// objects is how many there are by default, and atOnce how many of them at one
	// time.
	objects = 150
	// few is how many make test plays: two of each kind.
	few = 50
	// sample is the seed by default: the objects that every run of the tests plays.
	// make soak plays others.
	sample = 1000
	atOnce = 4
	// tolerated is how many faults are shown before the rest is only counted.
	tolerated = 40
)

// TestAWishIsAChangeOnlyIfItIsANewWish composes random objects as Crossplane
// does: with defaults left out, and stored as the API server and a webhook make
// of them. What is wished again is no change; each single change of a wish is
// one, also right after the creation; and so is each edit by somebody else of
// what is wished.
//
// KAUSALITY_SEED=n plays the object of seed n and those that follow it, of which
// there are KAUSALITY_OBJECTS.
func TestAWishIsAChangeOnlyIfItIsANewWish(t *testing.T) {
	seed, count := world.Number(t, world.EnvSeed, sample), world.Number(t, envObjects, world.Sample(few, objects))
	t.Logf("%s=%d %s=%d", world.EnvSeed, seed, envObjects, count)

	c := newCluster(t)
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(c.templates)), func(k string) bool { return !strings.Contains(k, os.Getenv(envKind)) })
	total := &tally{counts: map[string]int{}}

	var g errgroup.Group

	g.SetLimit(atOnce)

	for i := range count {
		g.Go(func() error {
			p := &play{cluster: c, seed: seed + i, template: all[(seed+i)%uint64(len(all))]}
			p.rng = rand.New(rand.NewPCG(p.seed, 0))

			p.play(t.Context())
			total.add(t, p)

			return nil
		})
	}

	_ = g.Wait() // Nobody returns an error.

	for _, what := range slices.Sorted(maps.Keys(total.counts)) {
		t.Logf("%6d %s", total.counts[what], what)
	}
}

// tally counts what was played.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	faults int
}

func (a *tally) add(t *testing.T, p *play) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()

	for what, n := range p.counts {
		a.counts[what] += n
	}

	for _, f := range p.faults {
		a.faults++
		if a.faults <= tolerated {
			t.Error(f.String())
		} else {
			t.Fail()
		}

		a.counts["faults: "+f.what]++
	}
}
