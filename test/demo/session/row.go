// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"unicode/utf8"
)

// width of what is printed, in columns; a single word may be wider.
const width = 100

// Where text begins on a row.
const (
	marginSaid  = "   "
	marginShown = "     │ "
	// of what is left out, below the bar of what is shown.
	marginOmitted = "     "
	// deeper is how much further a row begins that goes on with the one before.
	deeper = "  "
)

// lineEnd ends a row of a command that goes on.
const lineEnd = ` \`

// ellipsis ends a line that is cut.
const ellipsis = " …"

// Styles of spans; names of classes in a picture.
const (
	styleHeading = "heading"
	styleSaid    = "said"
	styleMargin  = "margin"
	styleCommand = "command"
	styleOutput  = "output"
	styleWarning = "warning"
	styleError   = "error"
	styleSuccess = "success"
)

// A span is text in one style. The style of a prompt is its user's name.
type span struct{ style, text string }

// A row is one of the terminal.
type row struct {
	spans []span
	// goesOn says that it goes on with the line of the row before.
	goesOn bool
}

func (r row) blank() bool { return len(r.spans) == 0 }

// command reports whether it is a part of a command.
func (r row) command() bool {
	return !r.blank() && r.spans[len(r.spans)-1].style == styleCommand
}

// rows lays a block out, each line on at most limit rows; 0 means no limit.
func rows(b Block, limit int) []row {
	var out []row

	if b.Kind == Heading || b.Kind == Said {
		out = append(out, row{})
	}

	for i, line := range b.Lines {
		out = append(out, lineRows(b.Kind, i, line, limit)...)
	}

	return out
}

// lineRows lays out the line of a block with an index.
func lineRows(kind Kind, index int, line string, limit int) []row {
	margin, style, end := marginShown, outputStyle(line), ""
	who := ""

	switch {
	case kind == Heading:
		margin, style = "", styleHeading
	case kind == Said:
		margin, style = marginSaid, styleSaid
	case kind == Omitted:
		margin, style = marginOmitted, styleOutput
	case kind == Typed && index == 0:
		who, style, end = prompt.FindString(line), styleCommand, lineEnd
	}

	indent := strings.Repeat(" ", leading(line)) + deeper

	parts := wrap(line, width-utf8.RuneCountInString(margin+end), utf8.RuneCountInString(indent), style == styleCommand)
	if limit > 0 && len(parts) > limit {
		parts = parts[:limit]
		parts[limit-1] += ellipsis
	}

	out := make([]row, len(parts))

	for i, part := range parts {
		if i < len(parts)-1 {
			part += end
		}

		if i > 0 {
			part = indent + part
		}

		r := row{goesOn: i > 0, spans: []span{{styleMargin, margin}}}
		if user := strings.TrimSuffix(who, "$ "); i == 0 && who != "" {
			r.spans = append(r.spans, span{user, who})
			part = strings.TrimPrefix(part, who)
		}

		r.spans = append(r.spans, span{style, part})
		out[i] = r
	}

	return out
}

// outputStyle is how a line of output is to be seen.
func outputStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "Warning: "):
		return styleWarning
	case strings.HasPrefix(line, "Error ") || strings.Contains(line, " is invalid: "):
		return styleError
	case strings.Contains(line, "@") && !strings.Contains(line, " "), strings.Contains(line, "[jira] = "):
		return styleSuccess // Who it was, and why.
	}

	return styleOutput
}

// leading is how many columns are before a line's first word, with branches of a
// tree.
func leading(line string) int {
	rest := strings.TrimLeft(line, " └├│─")

	return utf8.RuneCountInString(line[:len(line)-len(rest)])
}

// wrap breaks a line between words into parts of at most so many columns, where all
// but the first are indented by some. A command is not broken within quotes, nor
// behind a flag of one letter, whose value follows.
func wrap(line string, columns, indent int, command bool) []string {
	var (
		out    []string
		begin  int
		end    int // of the last word that fits
		quoted bool
	)

	for i, r := range line + " " {
		if r == '\'' && command {
			quoted = !quoted
		}

		word := line[strings.LastIndex(line[:i], " ")+1 : i]
		if r != ' ' || quoted || word == "" || command && len(word) == 2 && word[0] == '-' {
			continue
		}

		if end > begin && utf8.RuneCountInString(line[begin:i]) > columns {
			out = append(out, strings.TrimRight(line[begin:end], " "))

			if begin == 0 {
				columns -= indent
			}

			begin = end + len(line[end:]) - len(strings.TrimLeft(line[end:], " "))
		}

		end = i
	}

	return append(out, line[begin:])
}
