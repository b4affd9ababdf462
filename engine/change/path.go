// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strconv"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Path is a concrete path to a field. The creation and deletion of a whole
// object are the paths create and delete.
type Path = fieldpath.Path

// CoversText reports whether a pattern, as text, covers a path: as
// [Pattern.Covers] of the parsed text does, without parsing where the text is
// an ordinary one. A text that is no pattern covers nothing.
func CoversText(pattern string, path Path) bool {
	if pseudoPath(path) {
		return pattern == path[0].Field
	}

	rest := pattern

	for i := range path {
		if rest == "" {
			return i > 0
		}

		name, after, ok := cutSegment(rest)
		if !ok {
			p, err := ParsePattern(pattern)

			return err == nil && p.Covers(path)
		}

		if !standsFor(name, rest[0] == '[', path[i]) {
			return false
		}

		rest = after
	}

	return rest == "" && len(path) > 0
}

// FieldCovers reports whether a field, as [Change.Field] writes one, is a path or above it. Unlike
// in a pattern, a * in it is a part of a key.
func FieldCovers(field string, path Path) bool {
	if !strings.HasPrefix(path.String(), field) {
		return false
	}

	for n := range path {
		if path[:n+1].String() == field {
			return true
		}
	}

	return false
}

// cutSegment takes the first segment off an ordinary pattern: fields of plain
// characters, indices and keys in brackets behind a field. False where parsing
// has to show it.
func cutSegment(s string) (name, rest string, ok bool) {
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 2 || !ordinary(s[1:end], true) || leadingZero(s[1:end]) {
			return "", "", false
		}

		name, rest = s[1:end], s[end+1:]
	} else {
		end := strings.IndexAny(s, ".[")
		if end < 0 {
			end = len(s)
		}

		if !ordinary(s[:end], false) {
			return "", "", false
		}

		name, rest = s[:end], s[end:]
	}

	switch {
	case rest == "" || rest[0] == '[':
		return name, rest, true
	case rest[0] == '.' && len(rest) > 1 && rest[1] != '.' && rest[1] != '[':
		return name, rest[1:], true
	default:
		return "", "", false
	}
}

// ordinary reports whether a segment's text stands for itself.
func ordinary(s string, bracketed bool) bool {
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
			if c != '-' && c != '_' && c != '/' && c != '*' && (c != '.' || !bracketed) {
				return false
			}
		}
	}

	return s != ""
}

// leadingZero reports whether a text is read as another number than it writes, or
// may be too large for one.
func leadingZero(s string) bool {
	const certain = 9 // Digits that surely fit.

	return s[0] == '0' && len(s) > 1 || len(s) > certain && strings.Trim(s, "0123456789") == ""
}

// standsFor reports whether the name of a segment of a pattern stands for one of a path. In
// brackets it may be a prefix.
func standsFor(name string, bracketed bool, s fieldpath.Segment) bool {
	if name == wildcard {
		return true
	}

	if prefix, ok := strings.CutSuffix(name, wildcard); ok && bracketed {
		return s.Type == fieldpath.SegmentField && strings.HasPrefix(s.Field, prefix)
	}

	return named(s, name)
}

// named compares a segment with its name: a number may be an index or a key.
func named(s fieldpath.Segment, name string) bool {
	if s.Type == fieldpath.SegmentIndex {
		var digits [20]byte

		return string(strconv.AppendUint(digits[:0], uint64(s.Index), 10)) == name
	}

	return s.Field == name
}
