// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// What a tool says after a round.
const (
	inSync     = "InSync"
	syncFailed = "Failed"
)

// syncing is a program of test/gitops that applies what a file has, all the time.
type syncing struct {
	gitops

	name, file string
	// revision is the newest commit.
	revision string

	mu     sync.Mutex
	rounds []string
}

// syncs has it begin, with nothing in Git. It goes on until the test is over.
func (g gitops) syncs(t *testing.T, name, verb string, flags ...string) *syncing {
	t.Helper()

	s := &syncing{gitops: g, name: g.name + " " + name, file: filepath.Join(t.TempDir(), name+".yaml")}
	s.commit(t)

	args := append([]string{"run", "."}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, verb, path(t, g.config), s.file)...)
	cmd.Dir = filepath.Join("..", "gitops", g.name)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(running.Dir(), "kubeconfig"), "GOWORK=off")

	var problem bytes.Buffer

	cmd.Stderr = &problem

	// The program ends with its standard input.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	end := sync.OnceFunc(func() { _ = stdin.Close() })
	cmd.Cancel, cmd.WaitDelay = func() error { end(); return nil }, time.Minute

	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	read := make(chan struct{})

	go func() {
		defer close(read)

		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			s.said(t, lines.Text())
		}
	}()

	t.Cleanup(func() {
		end()

		<-read

		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v:\n%s", s.name, err, &problem)
		}
	})

	return s
}

// said notes a round, and logs it if the one before was another.
func (s *syncing) said(t *testing.T, line string) {
	t.Helper()

	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.rounds) == 0 || s.rounds[len(s.rounds)-1] != line {
		t.Logf("%s, round %d: %s", s.name, len(s.rounds), line)
	}

	s.rounds = append(s.rounds, line)
}

// commit replaces what is in Git.
func (s *syncing) commit(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()

	var text bytes.Buffer

	for _, u := range objects {
		raw, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&text, "---\n%s\n", raw)
	}

	next := s.file + ".next"
	if err := os.WriteFile(next, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Rename(next, s.file); err != nil {
		t.Fatal(err)
	}

	s.revision = fmt.Sprintf("%.7x", sha256.Sum256(text.Bytes()))
}

// says checks that the last round was of the newest commit, and what it came to.
func (s *syncing) says(state string, parts ...string) func(context.Context) error {
	return func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()

		last := ""
		if len(s.rounds) > 0 {
			last = s.rounds[len(s.rounds)-1]
		}

		message, ok := strings.CutPrefix(last, s.revision+" "+state+" ")
		for _, part := range parts {
			ok = ok && strings.Contains(message, part)
		}

		if !ok {
			return fmt.Errorf("%s says %q, not %s %s %q: %w", s.name, last, s.revision, state, parts, world.ErrOther)
		}

		return nil
	}
}

// count is how many rounds there were.
func (s *syncing) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.rounds)
}

// idle checks that in no round from one on something was to do, and all were of the newest commit.
func (s *syncing) idle(from int) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	idle := s.revision + " " + inSync + " "
	if i := slices.IndexFunc(s.rounds[from:], func(round string) bool { return round != idle }); i >= 0 {
		return fmt.Errorf("%s says %q: %w", s.name, s.rounds[from+i], world.ErrOther)
	}

	return nil
}
