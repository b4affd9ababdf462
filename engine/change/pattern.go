// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// errEmptyPath is the cause when a path names nothing.
var errEmptyPath = errors.New("the path is empty")

// Pattern selects paths: a field path that may hold the wildcard [*], and prefixes of keys as
// [team.example.org/*], and covers everything below it; or create or delete. Outside of brackets
// a * at the end of a name is a part of that.
type Pattern struct {
	segments Path
	text     string
	// prefixes says of each segment whether it is the prefix of keys; nil where none is.
	prefixes []bool
}

// ParsePattern parses crossplane-runtime's field path syntax. The error says
// what is wrong, without naming the text.
func ParsePattern(text string) (Pattern, error) {
	segments, err := fieldpath.Parse(text)
	if err != nil {
		return Pattern{}, fmt.Errorf("not a field path: %w", err)
	}

	if len(segments) == 0 {
		return Pattern{}, errEmptyPath
	}

	return Pattern{segments: segments, text: text, prefixes: prefixesOf(text, segments)}, nil
}

// prefixesOf says which segments of a parsed text are prefixes of keys; nil where none is.
func prefixesOf(text string, segments Path) []bool {
	if !strings.Contains(text, wildcard) {
		return nil
	}

	var out []bool

	at := 0
	for i, s := range segments {
		if text[at] == '.' {
			at++
		}

		if text[at] != '[' {
			at += nameEnd(text[at:])

			continue
		}

		at += strings.IndexByte(text[at:], ']') + 1

		if s.Type == fieldpath.SegmentField && s.Field != wildcard && strings.HasSuffix(s.Field, wildcard) {
			if out == nil {
				out = make([]bool, len(segments))
			}

			out[i] = true
		}
	}

	return out
}

// nameEnd is where the name of a field ends that a text begins with.
func nameEnd(text string) int {
	if n := strings.IndexAny(text, ".[]"); n >= 0 {
		return n
	}

	return len(text)
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Segments returns the parsed pattern.
func (p Pattern) Segments() Path { return p.segments }

// Pseudo reports whether the pattern is create or delete.
func (p Pattern) Pseudo() bool {
	return p.text == v1alpha1.MutationCreate || p.text == v1alpha1.MutationDelete
}

// Prefix returns how the keys begin that a segment of the pattern, by its index, stands for; false
// where it stands for one key, or for all.
func (p Pattern) Prefix(i int) (string, bool) {
	if len(p.prefixes) <= i || !p.prefixes[i] {
		return "", false
	}

	return strings.TrimSuffix(p.segments[i].Field, wildcard), true
}

// Wildcard reports whether the pattern holds a wildcard, or the prefix of a key.
func (p Pattern) Wildcard() bool {
	return p.prefixes != nil || slices.ContainsFunc(p.segments, isWildcard)
}

// Expand returns the paths that the pattern stands for in an object, as [fieldpath.Path.Expand]
// does.
func (p Pattern) Expand(object map[string]any) ([]Path, bool) {
	open := slices.Clone(p.segments)

	for i := range open {
		if _, ok := p.Prefix(i); ok {
			open[i].Field = wildcard
		}
	}

	all, ok := open.Expand(object)

	return slices.DeleteFunc(all, func(path Path) bool { return !p.Covers(path) }), ok
}

// CoversChange reports whether the pattern covers a change, as [Change.CoveredBy] does.
func (p Pattern) CoversChange(c Change) bool {
	return p.Covers(c.Path) && (c.Was == nil || p.Covers(c.Was))
}

// Covers reports whether a path is the pattern's or below it. Wildcards are about
// fields: create and delete only their own names cover.
func (p Pattern) Covers(path Path) bool {
	if pseudoPath(path) {
		return p.text == path[0].Field
	}

	if len(path) < len(p.segments) {
		return false
	}

	for i := range p.segments {
		if !p.selects(i, path[i]) {
			return false
		}
	}

	return true
}

// Within reports whether what the pattern stands for is, or may be, at a path or below it.
func (p Pattern) Within(path Path) bool {
	if pseudoPath(path) || p.Pseudo() {
		return pseudoPath(path) && p.text == path[0].Field
	}

	if len(p.segments) < len(path) {
		return false
	}

	for i, have := range path {
		if !p.selects(i, have) {
			return false
		}
	}

	return true
}

// Inside returns the paths below a change that the pattern stands for, where something of another
// shape takes the place of a map or a list, or that of it: what was in it is gone, or what is in it
// is new. A change of the order of a list has none.
func (p Pattern) Inside(c Change) []Path {
	_, was := c.From.([]any)
	if _, is := c.To.([]any); was && is {
		return nil
	}

	before := c.Path
	if c.Was != nil {
		before = c.Was
	}

	return append(p.below(before, c.From), p.below(c.Path, c.To)...)
}

// below returns the paths that the pattern stands for in a value at a path.
func (p Pattern) below(at Path, v any) []Path {
	if p.Pseudo() || pseudoPath(at) || len(p.segments) <= len(at) || !p.Within(at) {
		return nil
	}

	// As in an object of one field.
	const field = "v"

	rest := Pattern{segments: append(Path{fieldpath.Field(field)}, p.segments[len(at):]...)}
	if p.prefixes != nil {
		rest.prefixes = append([]bool{false}, p.prefixes[len(at):]...)
	}

	found, _ := rest.Expand(map[string]any{field: v})
	for i := range found {
		found[i] = slices.Concat(at, found[i][1:])
	}

	return found
}

// Overlaps reports whether there may be a path that both patterns cover.
func (p Pattern) Overlaps(q Pattern) bool {
	if p.Pseudo() || q.Pseudo() {
		return p.text == q.text
	}

	for i := range min(len(p.segments), len(q.segments)) {
		if !overlap(p, q, i) {
			return false
		}
	}

	return true
}

// pseudoPath reports whether a path is create or delete.
func pseudoPath(path Path) bool {
	return len(path) == 1 && path[0].Type == fieldpath.SegmentField &&
		(path[0].Field == v1alpha1.MutationCreate || path[0].Field == v1alpha1.MutationDelete)
}

// wildcard stands for every field or element, and at the end of a key in brackets for what begins
// as that does.
const wildcard = "*"

func isWildcard(s fieldpath.Segment) bool {
	return s.Type == fieldpath.SegmentField && s.Field == wildcard
}

// selects reports whether a segment of the pattern stands for one of a path. A place in a list
// has no prefix.
func (p Pattern) selects(i int, have fieldpath.Segment) bool {
	if prefix, ok := p.Prefix(i); ok {
		return have.Type == fieldpath.SegmentField && strings.HasPrefix(have.Field, prefix)
	}

	return isWildcard(p.segments[i]) || sameSegment(p.segments[i], have)
}

// overlap reports whether the segments at an index of two patterns may stand for the same. Digits
// in brackets may be a key.
func overlap(p, q Pattern, i int) bool {
	a, b := p.segments[i], q.segments[i]
	mine, isPrefix := p.Prefix(i)
	other, too := q.Prefix(i)

	switch {
	case isWildcard(a), isWildcard(b):
		return true
	case isPrefix && too:
		return strings.HasPrefix(mine, other) || strings.HasPrefix(other, mine)
	case isPrefix:
		return strings.HasPrefix(b.Key(), mine)
	case too:
		return strings.HasPrefix(a.Key(), other)
	default:
		return sameSegment(a, b)
	}
}

// sameSegment compares an index with a map key of the same digits as equal,
// for the syntax cannot distinguish them.
func sameSegment(a, b fieldpath.Segment) bool {
	if a.Type == b.Type {
		return a.Field == b.Field && a.Index == b.Index
	}

	return a.Key() == b.Key()
}
