// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/replay"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// logged are the tests of the package, with all that the manager and the function decide
// meanwhile logged, and decided again when they have passed.
type logged struct {
	tests *testing.M
	dir   string
}

func newLogged(m *testing.M) (*logged, error) {
	dir, err := os.MkdirTemp(os.Getenv(stack.EnvDecisions), "kausality-decisions-*")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for decision logs: %w", err)
	}

	return &logged{tests: m, dir: dir}, nil
}

func (l *logged) manager() string  { return filepath.Join(l.dir, "manager.log") }
func (l *logged) function() string { return filepath.Join(l.dir, "function.log") }

// main runs them against a stack.
func (l *logged) main() int {
	o := options()

	// All of it is logged, and nothing rotated. The race is one with the clock.
	if racing() == 0 {
		const more = 1 << 40

		flags := func(file string) []string {
			return []string{"--decision-log=" + file, "--decision-log-rate=0", fmt.Sprint("--decision-log-max-bytes=", int64(more))}
		}

		o.ManagerFlags = append(o.ManagerFlags, flags(l.manager())...)
		o.FunctionFlags = append(o.FunctionFlags, flags(l.function())...)
	}

	code := stack.Main(l, o, &running)
	if code == 0 && os.Getenv(stack.EnvDecisions) == "" {
		_ = os.RemoveAll(l.dir)
	}

	return code
}

// fewestReplayed is how many decisions each of both makes at least, where all tests run.
const fewestReplayed = 100

// Run runs the tests, and then decides again what was decided.
func (l *logged) Run() int {
	code := l.tests.Run()
	if code != 0 || racing() > 0 {
		return code
	}

	for _, file := range []string{l.manager(), l.function()} {
		if err := again(file); err != nil {
			fmt.Fprintf(os.Stderr, "cannot replay %s: %v\n", file, err)

			code = 1
		}
	}

	return code
}

var (
	errOtherwise = errors.New("not all is decided as it was")
	errFew       = errors.New("there are few decisions")
)

// again decides the decisions of a file again. Tests kill who writes it: a line may have no
// end.
func again(file string) error {
	selected := flag.Lookup("test.run").Value.String() != ""

	if _, err := os.Stat(file); selected && errors.Is(err, fs.ErrNotExist) {
		return nil // Nobody decided anything.
	}

	log := replay.Log{Name: file, Open: func() (io.ReadCloser, error) { return os.Open(file) }}

	s, err := replay.Run(context.Background(), []replay.Log{log}, replay.Options{Workers: runtime.GOMAXPROCS(0)})
	if err != nil {
		return err
	}

	var bad []error

	for _, c := range s.Changes {
		if !c.Masked { // What is decided by a credential is not decided so again.
			bad = append(bad, fmt.Errorf("%w: %+v", errOtherwise, c))
		}
	}

	for _, p := range s.Problems {
		if !strings.Contains(p.Message, "unexpected end of JSON input") {
			bad = append(bad, fmt.Errorf("%w: %+v", errOtherwise, p))
		}
	}

	if s.Unknown+s.Retried > 0 || s.Dropped > 0 {
		bad = append(bad, fmt.Errorf("%w: %d unknown, %d retried, %d dropped: %+v", errOtherwise, s.Unknown, s.Retried, s.Dropped, s.NotKnown))
	}

	// One test alone may decide little.
	if s.Decisions < fewestReplayed && !selected {
		bad = append(bad, fmt.Errorf("%w: %d", errFew, s.Decisions))
	}

	if err := errors.Join(bad...); err != nil {
		return err
	}

	fmt.Fprintf(os.Stderr, "%d decisions of %s were decided again: %d as they were, %d otherwise for what is masked\n",
		s.Decisions, filepath.Base(file), s.AsRecorded, s.Changed)

	return nil
}
