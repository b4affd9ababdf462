// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

// Unstorable are the fields whose zero values are never stored.
func Unstorable() []string { return unstorable() }

// Meant are the fields that are stored where they are empty.
func Meant() []string { return meant() }

// Written is written.
type Written = written

// ReadPlain is readPlain.
func (w *written) ReadPlain(text string) bool { return w.readPlain(text) }

// FormatPlain is formatPlain.
func (w *written) FormatPlain() (string, bool) { return w.formatPlain() }

// HashOfScalar is hashOfScalar.
func HashOfScalar(v any) (uint64, bool) { return hashOfScalar(v) }

// HashByJSON is hashByJSON.
func HashByJSON(v any) uint64 { return hashByJSON(v) }
