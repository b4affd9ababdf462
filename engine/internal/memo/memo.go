// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what objects compile to.
package memo

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxEntries is the most objects of which a Memo stores the compiled form.
const maxEntries = 16384

// Memo compiles each object once, by its content, and remembers those that do
// not compile too. It is safe for concurrent use and bounded.
type Memo[In, Out any] struct {
	kind    string
	compile func(In) (Out, field.ErrorList)

	mu   sync.Mutex
	seen map[string]outcome[Out]
}

type outcome[Out any] struct {
	out  Out
	errs field.ErrorList
}

// New makes an empty Memo of objects of a kind.
func New[In, Out any](kind string, compile func(In) (Out, field.ErrorList)) *Memo[In, Out] {
	return &Memo[In, Out]{kind: kind, compile: compile, seen: map[string]outcome[Out]{}}
}

// Get returns what an object compiles to, by its name and spec: nothing else
// may matter to it. The error names the object.
func (m *Memo[In, Out]) Get(in In, name string, spec any) (Out, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		var none Out

		return none, fmt.Errorf("cannot read %s %q: %w", m.kind, name, err)
	}

	key := name + "\x00" + string(raw)

	m.mu.Lock()
	defer m.mu.Unlock()

	got, ok := m.seen[key]
	if !ok {
		if len(m.seen) >= maxEntries {
			clear(m.seen)
		}

		got.out, got.errs = m.compile(in)
		m.seen[key] = got
	}

	if len(got.errs) > 0 {
		return got.out, fmt.Errorf("cannot use %s %q: %w", m.kind, name, got.errs.ToAggregate())
	}

	return got.out, nil
}
