// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most is the limit of a condition, event or warning, in characters. The details are one command away.
const Most = 200

// dots are what a cut text ends with, and more comes before the command that shows all of it.
const (
	dots = "..."
	more = " More: "
)

// Cut returns a text as one printable line of at most so many characters.
func Cut(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(s, "?"))

	if runes := []rune(s); len(runes) > most {
		return string(runes[:max(0, most-len(dots))]) + dots
	}

	return s
}

// Unset stands for a value that is not there.
const Unset = "(unset)"

// OrUnset is a value as it is shown; [Unset] where it is empty.
func OrUnset(value string) string { return cmp.Or(value, Unset) }

// CutWords is Cut between words.
func CutWords(s string, most int) string {
	out := Cut(s, most)
	if length(s) <= most {
		return out
	}

	text := strings.TrimSuffix(out, dots)
	if i := strings.LastIndexByte(text, ' '); i > 0 && !strings.HasPrefix(s, text+" ") {
		text = text[:i]
	}

	return strings.TrimSuffix(text, " ") + dots
}

// Join returns as many parts as fit into so many characters, separated by semicolons, and the
// number of the others. A first part that does not fit is cut.
func Join(parts []string, most int) string {
	if all := strings.Join(parts, "; "); length(all) <= most {
		return all
	}

	out := ""

	for i, part := range parts {
		next, rest := part, ""
		if i > 0 {
			next = out + "; " + part
		}

		if n := len(parts) - i - 1; n > 0 {
			rest = fmt.Sprintf("; and %d more", n)
		}

		switch long := length(next)+len(rest) > most; {
		case long && i == 0:
			return Cut(next, most-len(rest)) + rest
		case long:
			return fmt.Sprintf("%s; and %d more", out, len(parts)-i)
		}

		out = next
	}

	return out
}

// Pages returns all parts, separated by semicolons, in texts of at most so many characters. A part that is longer is cut.
func Pages(parts []string, most int) []string {
	var out []string

	for _, part := range parts {
		part = Cut(part, most)

		if n := len(out); n > 0 && length(out[n-1])+len("; ")+length(part) <= most {
			out[n-1] += "; " + part
		} else {
			out = append(out, part)
		}
	}

	return out
}

// First returns the first of some texts that is no longer than [Most], or else the last one, cut.
// The texts say the same, the fullest first.
func First(texts ...string) string {
	for _, text := range texts {
		if length(text) <= Most {
			return Cut(text, Most)
		}
	}

	return Cut(texts[len(texts)-1], Most)
}

// Then returns a text and a command, as sentences.
func Then(text, command string) string {
	switch {
	case command == "":
		return text
	case strings.HasSuffix(text, dots):
		return text + more + command
	default:
		return text + ". " + command
	}
}

// Room is how many characters there are between a text and a command.
func Room(text, command string) int { return Most - length(text) - length(command) - len(more) }

// Detailed returns a text that is no longer than [Most] as it is, and of another one the start and a command that
// shows all of it.
func Detailed(text, command string) string {
	if length(text) <= Most {
		return Cut(text, Most)
	}

	return Then(Cut(text, Room("", command)), command)
}

func length(s string) int { return utf8.RuneCountInString(s) }
