// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// errEmptyPath is the cause when a path names nothing.
var errEmptyPath = errors.New("the path is empty")

// Pattern selects paths: a field path that may hold the wildcard [*], and prefixes of keys as
// [team.example.org/*], and covers everything below it; or create or delete.
type Pattern struct {
	segments Path
	text     string
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

	return Pattern{segments: segments, text: text}, nil
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Segments returns the parsed pattern.
func (p Pattern) Segments() Path { return p.segments }

// Pseudo reports whether the pattern is create or delete.
func (p Pattern) Pseudo() bool {
	return p.text == v1alpha1.MutationCreate || p.text == v1alpha1.MutationDelete
}

// Wildcard reports whether the pattern holds a wildcard, or the prefix of a key.
func (p Pattern) Wildcard() bool {
	return slices.ContainsFunc(p.segments, func(s fieldpath.Segment) bool {
		_, ok := Prefix(s)

		return ok || isWildcard(s)
	})
}

// Expand returns the paths that the pattern stands for in an object, as [fieldpath.Path.Expand]
// does.
func (p Pattern) Expand(object map[string]any) ([]Path, bool) {
	open := slices.Clone(p.segments)

	for i, s := range open {
		if _, ok := Prefix(s); ok {
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

	for i, want := range p.segments {
		if !selects(want, path[i]) {
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
		if !selects(p.segments[i], have) {
			return false
		}
	}

	return true
}

// Overlaps reports whether there may be a path that both patterns cover.
func (p Pattern) Overlaps(q Pattern) bool {
	if p.Pseudo() || q.Pseudo() {
		return p.text == q.text
	}

	for i := range min(len(p.segments), len(q.segments)) {
		if !overlap(p.segments[i], q.segments[i]) {
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

// wildcard stands for every field or element, and at the end of a key for what begins as it does.
const wildcard = "*"

func isWildcard(s fieldpath.Segment) bool {
	return s.Type == fieldpath.SegmentField && s.Field == wildcard
}

// Prefix returns how the keys begin that a segment of a pattern stands for; false where it stands
// for one key, or for all.
func Prefix(s fieldpath.Segment) (string, bool) {
	if s.Type != fieldpath.SegmentField || s.Field == wildcard {
		return "", false
	}

	return strings.CutSuffix(s.Field, wildcard)
}

// selects reports whether a segment of a pattern stands for one of a path.
func selects(want, have fieldpath.Segment) bool {
	if prefix, ok := Prefix(want); ok {
		return strings.HasPrefix(textOf(have), prefix)
	}

	return isWildcard(want) || sameSegment(want, have)
}

// overlap reports whether two segments of patterns may stand for the same.
func overlap(a, b fieldpath.Segment) bool {
	p, isPrefix := Prefix(a)
	q, too := Prefix(b)

	switch {
	case isWildcard(a), isWildcard(b):
		return true
	case isPrefix && too:
		return strings.HasPrefix(p, q) || strings.HasPrefix(q, p)
	case isPrefix:
		return selects(a, b)
	case too:
		return selects(b, a)
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

	return textOf(a) == textOf(b)
}

// textOf is a segment as text, without brackets.
func textOf(s fieldpath.Segment) string {
	if s.Type == fieldpath.SegmentIndex {
		return strconv.FormatUint(uint64(s.Index), 10)
	}

	return s.Field
}
