// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plain reads and writes the one plain shape of YAML that nearly all
// annotations have: block style, the fields in their order, and texts that need no
// quotes. What is of another shape is left to the YAML library.
//
// A cache keyed by text before sigs.k8s.io/yaml is no substitute: by BenchmarkAnnotation of
// engine/allowance the plain shape reads in 1.4 µs and is written in 0.8, the library takes
// 52 and 83, and the cache 0.5 where it has a text, 54 where it has not, and helps no writer.
package plain

import "strings"

// Is reports whether a text is a YAML string as it stands, in the rules of
// YAML 1.1 as well as 1.2: it starts with a letter, so that it is no number, no
// date and no indicator, it is none of the words for true, false and null, and
// none of its characters mean anything to YAML where they stand.
func Is(s string) bool { return len(s) <= maxKey && IsValue(s) }

// IsValue reports whether a text is a YAML string as it stands, as the value of a field:
// there it may be of any length.
func IsValue(s string) bool {
	if s == "" || !letter(s[0]) || s[len(s)-1] == ':' {
		return false
	}

	for i := range len(s) {
		if !letter(s[i]) && !digit(s[i]) && strings.IndexByte("._-/@[]*:+=()", s[i]) < 0 {
			return false
		}
	}

	return len(s) > len("false") || !word(s)
}

// maxKey is the longest text taken as a plain one where it may be a map's key: a longer
// key needs another style (https://yaml.org/spec/1.2.2/#742-flow-mappings).
const maxKey = 120

// word reports whether YAML reads a text as true, false or null.
func word(s string) bool {
	switch strings.ToLower(s) {
	case "y", "yes", "on", "true", "n", "no", "off", "false", "null":
		return true
	default:
		return false
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }
