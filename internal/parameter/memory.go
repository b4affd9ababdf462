// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package parameter

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// readFor is how long one read may take: less than the API server waits for a webhook.
	readFor = 2 * time.Second
	// goodFor is how long what was read is good for.
	goodFor = 2 * time.Second
	// failedFor is how long it counts that it could not be read: whoever asks for the same
	// meanwhile need not wait for that.
	failedFor = time.Second
	// maxKnown is how many answers are remembered.
	maxKnown = 4096
)

// memory remembers what was read, and has it read once for all who ask for it meanwhile.
// It is safe for concurrent use.
type memory[K comparable, V any] struct {
	now     func() time.Time
	reading singleflight.Group

	mu    sync.Mutex
	known map[K]answer[V]
	// swept is when what is no longer good was forgotten last.
	swept time.Time
}

// answer is what was read, or why it was not.
type answer[V any] struct {
	value V
	err   error
	until time.Time
}

func newMemory[K comparable, V any](now func() time.Time) *memory[K, V] {
	return &memory[K, V]{now: now, known: map[K]answer[V]{}}
}

// get is what is remembered, or what is read. Whoever asks waits for as long as a context
// lasts, and as one read may take; the read itself goes on for the others.
func (m *memory[K, V]) get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if a, ok := m.recall(key); ok {
		return a.value, a.err
	}

	ctx, stop := context.WithTimeout(ctx, readFor)
	defer stop()

	got := m.reading.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		// A read may have ended since.
		if a, ok := m.recall(key); ok {
			return a.value, a.err
		}

		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), readFor)
		defer stop()

		begun := m.now()
		v, err := read(ctx)
		m.remember(key, v, err, begun)

		return v, err
	})

	select {
	case r := <-got:
		v, _ := r.Val.(V)

		return v, r.Err
	case <-ctx.Done():
		var none V

		return none, fmt.Errorf("the API server has not answered: %w", ctx.Err())
	}
}

// recall is what is remembered and still good.
func (m *memory[K, V]) recall(key K) (answer[V], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	a, ok := m.known[key]

	return a, ok && m.now().Before(a.until)
}

// remember remembers what was read since a time, and from time to time forgets what is no longer good.
func (m *memory[K, V]) remember(key K, v V, err error, begun time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.now()

	if len(m.known) >= maxKnown {
		clear(m.known)
	}

	if now.Sub(m.swept) >= goodFor {
		maps.DeleteFunc(m.known, func(_ K, a answer[V]) bool { return !now.Before(a.until) })
		m.swept = now
	}

	until := begun.Add(goodFor)
	if err != nil {
		until = now.Add(failedFor)
	}

	m.known[key] = answer[V]{value: v, err: err, until: until}
}
