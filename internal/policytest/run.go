// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"sync"
	"time"
)

// Status is what became of a scenario.
type Status string

// Statuses.
const (
	// Passed is a scenario that is decided as it wants.
	Passed Status = "Passed"
	// Failed is one that is not.
	Failed Status = "Failed"
	// Unreadable is one that cannot be decided: it, or a policy, is not as it should be.
	Unreadable Status = "Unreadable"
	// Updated is one that was not decided as it wanted, and now wants what is decided.
	Updated Status = "Updated"
)

// Result is what became of a scenario.
type Result struct {
	// Path of its file, and its name, which is that without the ending.
	Path, Name string
	// Reason why things are to be decided so, as the scenario says.
	Reason string
	Status Status
	// Differences between what it wants and what is decided; of Failed.
	Differences []Difference
	// Missing says what it would take to allow each change that is not allowed; of Failed, where
	// something else is wanted.
	Missing []string
	// Decided is what want.yaml could say, where there is none; of Failed.
	Decided string
	// Err says why it is Unreadable.
	Err error
	// Took is how long it was decided.
	Took time.Duration

	exercised []*exercise
}

// Options say what is tested, and how.
type Options struct {
	// Select the scenarios whose names match; nil for all.
	Select *regexp.Regexp
	// Update those that are not decided as they want, by writing that on the disk.
	Update bool
	// Coverage is true where [CoverageOf] is to sum up what was tried.
	Coverage bool
	// Enforce has what is in Shadow mode be in force: it is to be tested before it is.
	Enforce bool
	// Clock tells how long it takes.
	Clock func() time.Time
}

// ErrNoneSelected is the cause where no scenario is to be tested.
var ErrNoneSelected = errors.New("no scenario has a name that matches")

// Run tests the scenarios in some directories and below them, several at once. The results are
// in the order of their names. An error is about directories: there is none in which a scenario is.
func Run(ctx context.Context, files Files, roots []string, opts Options) ([]Result, error) {
	places, err := Find(files, roots...)
	if err != nil {
		return nil, err
	}

	if opts.Select != nil {
		selected := places[:0]

		for _, at := range places {
			if opts.Select.MatchString(at.name()) {
				selected = append(selected, at)
			}
		}

		if places = selected; len(places) == 0 {
			return nil, ErrNoneSelected
		}
	}

	r := NewReader(files)
	r.enforce = opts.Enforce

	out := make([]Result, len(places))
	each(len(places), func(i int) {
		if ctx.Err() == nil {
			out[i] = r.test(places[i], opts)
		}
	})

	return out, ctx.Err()
}

// each does n things, as many at once as there are processors.
func each(n int, do func(i int)) {
	var all sync.WaitGroup

	next := make(chan int)

	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}

	for i := range n {
		next <- i
	}

	close(next)
	all.Wait()
}

// test tests one scenario.
func (r *Reader) test(at Place, opts Options) Result {
	began := opts.Clock()
	out := Result{Path: at.Path, Name: at.name()}

	s, err := r.Read(at)
	if err == nil {
		err = out.judge(&s, opts)
	}

	if out.Reason = s.Reason; err != nil {
		out.Status, out.Err = Unreadable, err
	}

	out.Took = opts.Clock().Sub(began)

	return out
}

// judge decides what a scenario asks, and compares.
func (o *Result) judge(s *Scenario, opts Options) error {
	if err := s.compiles(); err != nil {
		return err
	}

	got, err := s.Outcome()
	if err != nil {
		return err
	}

	if s.HasWant() {
		if o.Differences, err = s.Check(got); err != nil {
			return err
		}
	}

	switch {
	case s.HasWant() && len(o.Differences) == 0:
		o.Status = Passed
	case opts.Update:
		o.Status, o.Differences = Updated, nil
		err = s.update(got)
	case s.HasWant():
		o.Status, o.Missing = Failed, got.Missing
	default:
		o.Status = Failed
		o.Decided, err = got.Want()
	}

	if err == nil && opts.Coverage && o.Status != Failed {
		o.exercised, err = s.exercises(got)
	}

	return err
}

func (s *Scenario) update(got Outcome) error {
	written, err := s.Renew(got)
	if err != nil {
		return err
	}

	return s.Save("", written)
}
