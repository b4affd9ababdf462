// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// errEmptyPath is the cause when a path names nothing.
var errEmptyPath = errors.New("the path is empty")

// Pattern selects paths: a field path that may hold the wildcard [*] and
// covers everything below it, or create or delete.
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

// Wildcard reports whether the pattern holds a wildcard.
func (p Pattern) Wildcard() bool { return slices.ContainsFunc(p.segments, isWildcard) }

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
		if want.Type == fieldpath.SegmentField && want.Field == "*" {
			continue
		}

		if !sameSegment(want, path[i]) {
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
		a, b := p.segments[i], q.segments[i]
		if !isWildcard(a) && !isWildcard(b) && !sameSegment(a, b) {
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

func isWildcard(s fieldpath.Segment) bool {
	return s.Type == fieldpath.SegmentField && s.Field == "*"
}

// sameSegment compares an index with a map key of the same digits as equal,
// for the syntax cannot distinguish them.
func sameSegment(a, b fieldpath.Segment) bool {
	if a.Type == b.Type {
		return a.Field == b.Field && a.Index == b.Index
	}

	return name(a) == name(b)
}

// name is a segment as text, without brackets.
func name(s fieldpath.Segment) string {
	if s.Type == fieldpath.SegmentIndex {
		return strconv.FormatUint(uint64(s.Index), 10)
	}

	return s.Field
}
