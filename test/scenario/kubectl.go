// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

// errSucceeded is the cause when a command succeeds that should not.
var errSucceeded = errors.New("it succeeded")

// kubectl runs kubectl as a user and shows the command and what it prints,
// warnings and errors too. The empty user is the cluster's administrator.
func (s *Scenario) kubectl(ctx context.Context, user string, args ...string) (string, error) {
	out, err := s.quietly(ctx, user, args...)

	who := user
	if who == "" {
		who = "admin"
	}

	s.narrator.Show(fmt.Sprintf("%s$ kubectl %s\n%s", who, quote(args), out))

	return out, err
}

// quietly runs kubectl as a user without showing it.
func (s *Scenario) quietly(ctx context.Context, user string, args ...string) (string, error) {
	// Manifests are shown as one would name them in the repository.
	shell := play.Shell{Stack: s.stack, Dir: filepath.Dir(s.examples)}

	out, err := shell.Command(ctx, user, "kubectl", args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("cannot run kubectl %s: %w: %s", quote(args), err, bytes.TrimSpace(out))
	}

	return string(out), nil
}

// refused runs kubectl and expects the API server to refuse, in words.
func (s *Scenario) refused(ctx context.Context, user string, words []string, args ...string) error {
	out, err := s.kubectl(ctx, user, args...)
	if err == nil {
		return fmt.Errorf("kubectl %s: %w", quote(args), errSucceeded)
	}

	return mentions(out, words...)
}

// errUnsaid is the cause when a text does not say what it should.
var errUnsaid = errors.New("a text does not say what it should")

func mentions(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("%w: %q is not in %q", errUnsaid, w, text)
		}
	}

	return nil
}

// quote writes arguments as one would type them.
func quote(args []string) string {
	out := make([]string, len(args))

	for i, a := range args {
		out[i] = a
		if strings.ContainsAny(a, " {}[]\"*") {
			out[i] = "'" + a + "'"
		}
	}

	return strings.Join(out, " ")
}
