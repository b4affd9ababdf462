// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Warned is a client of a user that remembers what it is warned of.
type Warned struct {
	client.Client

	mu   sync.Mutex
	said []string
}

// WarnedAs makes one of somebody, by name and groups.
func WarnedAs(t *testing.T, s *stack.Stack, user string, groups ...string) *Warned {
	t.Helper()

	w := &Warned{}
	config := s.Config()
	config.QPS = -1
	config.WarningHandler = w
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	w.Client = c

	return w
}

// HandleWarningHeader remembers a warning.
func (w *Warned) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.said = append(w.said, text)
}

// Take returns what was said since the last time.
func (w *Warned) Take() string {
	w.mu.Lock()
	defer w.mu.Unlock()

	out := strings.Join(w.said, "\n")
	w.said = nil

	return out
}
