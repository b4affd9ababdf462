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
// not compile too. It is safe for concurrent use, different objects are compiled at
// once, and it is bounded.
type Memo[In, Out any] struct {
	kind    string
	compile func(In) (Out, field.ErrorList)

	mu   sync.Mutex
	seen map[string]func() (Out, field.ErrorList)
}

// New makes an empty Memo of objects of a kind.
func New[In, Out any](kind string, compile func(In) (Out, field.ErrorList)) *Memo[In, Out] {
	return &Memo[In, Out]{kind: kind, compile: compile, seen: map[string]func() (Out, field.ErrorList){}}
}

// Get returns what an object compiles to, by its name and spec: nothing else
// may matter to it. The error names the object.
func (m *Memo[In, Out]) Get(in In, name string, spec any) (Out, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		var none Out

		return none, fmt.Errorf("cannot read %s %q: %w", m.kind, name, err)
	}

	out, errs := m.entry(in, name+"\x00"+string(raw))()
	if len(errs) > 0 {
		return out, fmt.Errorf("cannot use %s %q: %w", m.kind, name, errs.ToAggregate())
	}

	return out, nil
}

// entry compiles an object the first time it is called.
func (m *Memo[In, Out]) entry(in In, key string) func() (Out, field.ErrorList) {
	m.mu.Lock()
	defer m.mu.Unlock()

	got, ok := m.seen[key]
	if !ok {
		if len(m.seen) >= maxEntries {
			clear(m.seen)
		}

		got = sync.OnceValues(func() (Out, field.ErrorList) { return m.compile(in) })
		m.seen[key] = got
	}

	return got
}
