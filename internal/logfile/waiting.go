// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"sync"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// waiting has what was in force once for all entries that wait to be written and have it: a
// function encodes it for each run. The zero value has none; it is safe for concurrent use.
type waiting struct {
	mu sync.Mutex
	// byDigest are its lines, and how many entries have them.
	byDigest map[string]*shared
}

// shared is a line that entries share.
type shared struct {
	text    []byte
	entries int
}

// add has an entry share what was in force with others. It returns for how many bytes more
// there has to be room.
func (w *waiting) add(entry *decisionlog.Entry) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()

	have := w.byDigest[entry.Digest]
	if have != nil {
		entry.InForce = have.text
		have.entries++

		return 0
	}

	if w.byDigest == nil {
		w.byDigest = map[string]*shared{}
	}

	w.byDigest[entry.Digest] = &shared{text: entry.InForce, entries: 1}

	return int64(len(entry.InForce))
}

// remove is of an entry that does not wait any more. It returns for how many bytes there is
// room again.
func (w *waiting) remove(entry *decisionlog.Entry) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()

	have := w.byDigest[entry.Digest]
	if have == nil {
		return 0
	}

	have.entries--
	if have.entries > 0 {
		return 0
	}

	delete(w.byDigest, entry.Digest)

	return int64(len(have.text))
}
