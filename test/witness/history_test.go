// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"maps"
	"slices"
	"sync"
)

// Kinds of managed resources.
const (
	kindDatabase = "Database"
	kindRole     = "Role"
	kindGrant    = "Grant"
	kindView     = "View"
)

// A history is what every version of the managed resources said of why they are as
// they are.
type history struct {
	mu      sync.Mutex
	traces  map[subject]map[cause]bool
	values  map[subject]map[deed]map[cause]bool
	windows map[subject]map[string]bool
}

// A subject is a managed resource.
type subject struct{ kind, name string }

// A cause is an entry of a trace, as far as it distinguishes one from another.
type cause struct {
	field, initiator, ticket string
	generation               int64
}

func newHistory() *history {
	return &history{
		traces: map[subject]map[cause]bool{}, values: map[subject]map[deed]map[cause]bool{}, windows: map[subject]map[string]bool{},
	}
}

// ofValue are the causes of a field having a value.
func (h *history) ofValue(s subject, d deed) []cause {
	h.mu.Lock()
	defer h.mu.Unlock()

	return slices.Collect(maps.Keys(h.values[s][d]))
}

// of are the causes of a field of a managed resource, with a ticket; any where that
// is "".
func (h *history) of(s subject, field, ticket string) []cause {
	h.mu.Lock()
	defer h.mu.Unlock()

	var out []cause

	for c := range h.traces[s] {
		if c.field == field && (ticket == "" || c.ticket == ticket) {
			out = append(out, c)
		}
	}

	return out
}

// openedBy reports whether a window has opened the gate of a managed resource.
func (h *history) openedBy(s subject, window string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.windows[s][window]
}
