// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A SegmentType says what a segment of a path selects by.
type SegmentType int

// Types of segments. The zero value is none.
const (
	// SegmentField selects a field of an object.
	SegmentField SegmentType = iota + 1
	// SegmentIndex selects an element of a list.
	SegmentIndex
)

// A Segment is one step of a path.
type Segment struct {
	// Type of it.
	Type SegmentType
	// Field that is selected, of SegmentField.
	Field string
	// Index that is selected, from 0, of SegmentIndex.
	Index uint
}

// A Path leads from an object to one of its values.
type Path []Segment

// Field returns the segment of a field. Quotes around its name are no part of it.
func Field(name string) Segment {
	return Segment{Type: SegmentField, Field: strings.Trim(name, `'"`)}
}

// FieldOrIndex returns the segment of what stands in brackets: an index where that is
// a whole number of at most 32 bits, or else a field.
func FieldOrIndex(text string) Segment {
	if i, err := strconv.ParseUint(text, 10, 32); err == nil {
		return Segment{Type: SegmentIndex, Index: uint(i)}
	}

	return Field(text)
}

// Key returns the map key that the segment selects: digits are one too.
func (s Segment) Key() string {
	if s.Type == SegmentIndex {
		return strconv.FormatUint(uint64(s.Index), 10)
	}

	return s.Field
}

// String writes the path as [Parse] reads it.
func (p Path) String() string {
	const each = 12 // Bytes that most segments have room in.

	out := make([]byte, 0, len(p)*each)

	for i, s := range p {
		switch {
		case s.Type == SegmentIndex:
			out = append(strconv.AppendUint(append(out, '['), uint64(s.Index), 10), ']')
		case s.Field == "*" || strings.Contains(s.Field, "."):
			out = append(append(append(out, '['), s.Field...), ']')
		case i == 0:
			out = append(out, s.Field...)
		default:
			out = append(append(out, '.'), s.Field...)
		}
	}

	return string(out)
}

// A SyntaxError says what of a text is no path.
type SyntaxError struct {
	// Text of what should be a path.
	Text string
	// At is where the mistake is, in bytes from 0.
	At int
	// Found is the character there.
	Found byte
	// Unterminated is true where it is a bracket that is not closed.
	Unterminated bool
}

// Error names the character and its place.
func (e *SyntaxError) Error() string {
	if e.Unterminated {
		return fmt.Sprintf("unterminated %q at position %d", e.Found, e.At)
	}

	return fmt.Sprintf("unexpected %q at position %d", e.Found, e.At)
}

// Parse reads a path. The empty text is the empty path. The error is a *SyntaxError.
func Parse(text string) (Path, error) {
	out := make(Path, 0, strings.Count(text, ".")+strings.Count(text, "[")+1)

	for at := 0; at < len(text); {
		switch text[at] {
		case '.':
			// It stands between two fields, or a bracket and a field.
			if at == 0 || at == len(text)-1 {
				return nil, &SyntaxError{Text: text, At: at, Found: '.'}
			}

			at++

			if next := text[at]; next == '.' || next == '[' {
				return nil, &SyntaxError{Text: text, At: at, Found: next}
			}
		case ']':
			return nil, &SyntaxError{Text: text, At: at, Found: ']'}
		case '[':
			end, err := bracket(text, at)
			if err != nil {
				return nil, err
			}

			out = append(out, FieldOrIndex(text[at+1:end]))
			at = end + 1
		default:
			n := strings.IndexAny(text[at:], ".[]")
			if n < 0 {
				n = len(text) - at
			}

			out = append(out, Field(text[at:at+n]))
			at += n
		}
	}

	return out, nil
}

// bracket returns where the bracket that opens at a place of a text closes.
func bracket(text string, at int) (int, error) {
	n := strings.IndexByte(text[at:], ']')

	switch {
	case n < 0:
		return 0, &SyntaxError{Text: text, At: at, Found: '[', Unterminated: true}
	case n == 1:
		return 0, &SyntaxError{Text: text, At: at + n, Found: ']'}
	}

	if inner := strings.IndexByte(text[at+1:at+n], '['); inner >= 0 {
		return 0, &SyntaxError{Text: text, At: at + 1 + inner, Found: '['}
	}

	return at + n, nil
}

// In returns the value that a path leads to in an object. False where there is none: a
// field or element on the way that is not there, or that is no object or list. The empty
// path leads nowhere.
func (p Path) In(object map[string]any) (any, bool) {
	if len(p) == 0 {
		return nil, false
	}

	return p.below(object)
}

// below returns what a path leads to from any value.
func (p Path) below(v any) (any, bool) {
	for _, s := range p {
		switch t := v.(type) {
		case map[string]any:
			value, ok := t[s.Field]
			if s.Type != SegmentField || !ok {
				return nil, false
			}

			v = value
		case []any:
			if s.Type != SegmentIndex || s.Index >= uint(len(t)) {
				return nil, false
			}

			v = t[s.Index]
		default:
			return nil, false
		}
	}

	return v, true
}

// Value returns the value at a path, as text, of an object; see [Path.In]. False also
// where the text is no path.
func Value(object map[string]any, path string) (any, bool) {
	p, err := Parse(path)
	if err != nil {
		return nil, false
	}

	return p.In(object)
}

// Fields returns the names of the fields of a path; false where it leads through a
// list.
func (p Path) Fields() ([]string, bool) {
	if slices.ContainsFunc(p, func(s Segment) bool { return s.Type != SegmentField }) {
		return nil, false
	}

	out := make([]string, len(p))
	for i, s := range p {
		out[i] = s.Field
	}

	return out, true
}

// Expand returns the paths that a path with wildcards stands for in an object: a field
// of the name * stands for each field of an object, in order, and for each element of a
// list. What is not there has none. False where a step of the path, or a wildcard, does
// not fit what is there.
func (p Path) Expand(object map[string]any) ([]Path, bool) { return expand(nil, object, p) }

// expand expands the rest of a path below a value.
func expand(at Path, v any, rest Path) ([]Path, bool) {
	if len(rest) == 0 {
		return []Path{at}, true
	}

	steps := rest[:1]

	if s := rest[0]; s.Type == SegmentField && s.Field == "*" {
		all, ok := children(v)
		if !ok {
			return nil, false
		}

		steps = all
	}

	var out []Path

	for _, s := range steps {
		next, found := Path{s}.below(v)

		switch {
		case !found && fits(s, v):
			continue
		case !found:
			return nil, false
		}

		below, ok := expand(append(slices.Clone(at), s), next, rest[1:])
		if !ok {
			return nil, false
		}

		out = append(out, below...)
	}

	return out, true
}

// children are the steps to what is in a value, in order; false where nothing can be.
func children(v any) (Path, bool) {
	var out Path

	switch t := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			out = append(out, Field(key))
		}
	case []any:
		for i := range t {
			out = append(out, Segment{Type: SegmentIndex, Index: uint(i)})
		}
	default:
		return nil, false
	}

	return out, true
}

// fits reports whether a value could have what a segment selects.
func fits(s Segment, v any) bool {
	switch v.(type) {
	case nil:
		return true
	case map[string]any:
		return s.Type == SegmentField
	case []any:
		return s.Type == SegmentIndex
	default:
		return false
	}
}
