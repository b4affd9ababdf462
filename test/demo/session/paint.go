// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// A painter writes rows for a terminal: what begins and ends a span of a style.
type painter func(style string) (begin, end string)

func plain(string) (begin, end string) { return "", "" }

// ansi paints for terminals.
func ansi(style string) (begin, end string) {
	codes := map[string]string{
		styleHeading: "1",
		styleMargin:  "2",
		styleCommand: "1",
		styleWarning: "33",
		styleError:   "31",
		styleSuccess: "32",
		"admin":      "34;1",
		"hans":       "36;1",
		"anna":       "35;1",
	}

	code, ok := codes[style]
	if !ok {
		return "", ""
	}

	return "\x1b[" + code + "m", "\x1b[0m"
}

func (p painter) rows(rows []row) string {
	var out strings.Builder

	for _, r := range rows {
		for _, s := range r.spans {
			begin, end := p(s.style)
			out.WriteString(begin + s.text + end)
		}

		out.WriteString("\n")
	}

	return out.String()
}
