// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// rest waits until all is quiet: in several rounds, one after the other, the tool finds nothing to do,
// and neither it nor the manager writes anything.
func (s *storeFromGit) rest(t *testing.T) {
	t.Helper()

	const rounds = 4

	var (
		since              = auditFromNow(t)
		changes, approvals = s.changes.count(), s.approvals.count()
	)

	s.eventually(t, "quiet", func(context.Context) error {
		err := errors.Join(s.changes.idle(changes), s.approvals.idle(approvals))

		if w := since.writes(t, func(w write) bool {
			return slices.Contains([]string{storesUser, approvalsUser, managerAccount}, w.user) && strings.Contains(w.name, s.name)
		}); len(w) > 0 {
			err = errors.Join(err, fmt.Errorf("%+v: %w", w, world.ErrOther))
		}

		switch {
		case err != nil: // Begin anew.
			since, changes, approvals = auditFromNow(t), s.changes.count(), s.approvals.count()
		case s.changes.count() < changes+rounds || s.approvals.count() < approvals+rounds:
			err = fmt.Errorf("not for %d rounds yet: %w", rounds, world.ErrOther)
		}

		return err
	})
}

// wrote checks how many writes there were by a user, of a resource and a name; empty stands for all
// that belong to the store.
func (s *storeFromGit) wrote(t *testing.T, since auditLog, user, res, name string, want int) {
	t.Helper()

	if got := s.writes(t, since, user, res, name); len(got) != want {
		t.Errorf("%s wrote %+v, want %d", user, got, want)
	}
}

func (s *storeFromGit) writes(t *testing.T, since auditLog, user, res, name string) []write {
	t.Helper()

	return since.writes(t, func(w write) bool {
		return w.user == user && (w.resource == res || res == "") && (w.name == name || name == "" && strings.Contains(w.name, s.name))
	})
}

// fights checks that a change was no fight, and logs who has written the store: the spec was changed once,
// and the manager wrote no more than so often. Flux compares an object with what a trial makes of it a moment
// later, so that it applies the same once more, which changes nothing, where the manager wrote in between.
func (s *storeFromGit) fights(t *testing.T, since auditLog, generation int64) {
	t.Helper()

	const most = 8

	tool := len(s.writes(t, since, storesUser, "stores", s.name))
	manager := len(s.writes(t, since, managerAccount, "stores", s.name))

	t.Logf("writes of Store %q: %d by the tool, %d by the manager", s.name, tool, manager)

	if manager == 0 || manager > most || tool < 1 || tool > 1+manager {
		t.Errorf("Store %q was written %d times by the tool, and %d times by the manager", s.name, tool, manager)
	}

	if u, err := s.of(t.Context(), storeKind); err != nil || u.GetGeneration() != generation+1 {
		t.Errorf("generation %d, %v, want one more than %d", u.GetGeneration(), err, generation)
	}
}

// generation is the store's.
func (s *storeFromGit) generation(t *testing.T) int64 {
	t.Helper()

	u, err := s.of(t.Context(), storeKind)
	if err != nil {
		t.Fatal(err)
	}

	return u.GetGeneration()
}
