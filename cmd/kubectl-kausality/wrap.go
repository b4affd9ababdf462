// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Widths of text for people, in characters.
const (
	// defaultWidth is that of lines that go to no terminal.
	defaultWidth = 100
	// minWidth is the least that is of use.
	minWidth = 40
)

// widthOf is how long lines may be that are written to out: as the terminal is wide.
func widthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return defaultWidth
	}

	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return defaultWidth
	}

	return max(width, minWidth)
}

// wrap breaks lines between words. What follows is set below the first line's text, and
// a word that is longer than a line stays whole, so that it can be copied.
func wrap(text string, width int) string {
	var out strings.Builder

	for line := range strings.Lines(text) {
		body, end := strings.TrimSuffix(line, "\n"), ""
		if len(body) < len(line) {
			end = "\n"
		}

		out.WriteString(wrapLine(body, width) + end)
	}

	return out.String()
}

func wrapLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}

	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	indent := lead + strings.Repeat(" ", hanging)
	out, at := lead, utf8.RuneCountInString(lead)

	for i, word := range strings.Split(line[len(lead):], " ") {
		n := utf8.RuneCountInString(word)

		switch {
		case i == 0:
			out, at = out+word, at+n
		case at+1+n > width:
			out, at = strings.TrimRight(out, " ")+"\n"+indent+word, len(indent)+n
		default:
			out, at = out+" "+word, at+1+n
		}
	}

	return out
}

// hanging is how far the rest of a line is set in: as far as what a list's dash leads.
const hanging = 2
