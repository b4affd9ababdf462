// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"strconv"
	"strings"
)

// Reader reads a text of the plain shape, line by line. It fails for good at the first
// thing that is not plain, or not in its order. What it returns shares the text's memory.
type Reader struct {
	// Rest is what is not read yet.
	Rest string
	// Failed is true once something was not of the plain shape.
	Failed bool
}

// More reports whether there is more to read.
func (r *Reader) More() bool { return !r.Failed && r.Rest != "" }

// Peek reports whether the rest begins with a prefix.
func (r *Reader) Peek(prefix string) bool { return !r.Failed && strings.HasPrefix(r.Rest, prefix) }

// Skip reads a prefix, if the rest begins with it, and reports whether it does.
func (r *Reader) Skip(prefix string) bool {
	if !r.Peek(prefix) {
		return false
	}

	r.Rest = r.Rest[len(prefix):]

	return true
}

// Text reads a line that has to be there, and returns what is behind its key.
func (r *Reader) Text(key string) string {
	if !r.Skip(key) {
		r.Failed = true

		return ""
	}

	return r.Value()
}

// Value reads the rest of a line.
func (r *Reader) Value() string {
	s, ok := r.line()
	r.Failed = r.Failed || !ok || !Is(s)

	return s
}

// Long reads a line that has to be there, of any length.
func (r *Reader) Long(key string) string {
	if !r.Skip(key) {
		r.Failed = true

		return ""
	}

	s, ok := r.line()
	r.Failed = r.Failed || !ok || !IsValue(s)

	return s
}

// Number reads a line that has to be there, with a decimal number as Go writes it.
func (r *Reader) Number(key string) int64 {
	if !r.Skip(key) {
		r.Failed = true

		return 0
	}

	s, ok := r.line()

	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || strconv.FormatInt(n, 10) != s { // 007 is octal in YAML.
		r.Failed = true
	}

	return n
}

// line reads the rest of a line; false where that has no end.
func (r *Reader) line() (string, bool) {
	s, rest, ok := strings.Cut(r.Rest, "\n")
	r.Rest = rest

	return s, ok
}
