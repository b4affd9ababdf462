// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import "strings"

// Annotations are read and written in every admission, and nearly all of them
// are of one plain shape: block style, the fields in their order, and texts
// that need no quotes. This package reads and writes that shape itself, and
// leaves everything else to the YAML library, which takes some thirty times as
// long. Both ways give the same; fuzz tests hold one against the other.

// plain reports whether a text is a YAML string as it stands, in the rules of
// YAML 1.1 as well as 1.2: it starts with a letter, so that it is no number, no
// date and no indicator, it is none of the words for true, false and null, and
// none of its characters mean anything to YAML where they stand.
func plain(s string) bool {
	if s == "" || !letter(s[0]) || s[len(s)-1] == ':' || len(s) > maxPlain {
		return false
	}

	for i := range len(s) {
		if !letter(s[i]) && !digit(s[i]) && strings.IndexByte("._-/@[]*:+=()", s[i]) < 0 {
			return false
		}
	}

	return len(s) > len("false") || !word(s)
}

// maxPlain is the longest text taken as a plain one. As a map key a longer one
// needs another style (https://yaml.org/spec/1.2.2/#742-flow-mappings).
const maxPlain = 120

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
