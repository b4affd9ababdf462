// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longest is on how many rows a picture shows a line at most.
const longest = 4

// How a picture is laid out, in pixels. A column is as wide as in the widest of
// the common monospaced fonts.
const (
	columnWidth = 8.43
	rowHeight   = 18
	padding     = 16
	barHeight   = 30
	// baseline is how far above the end of its row text stands.
	baseline = 5
)

// How fast a picture plays: as it happened, but for the waiting.
const (
	firstPause   = 300 * time.Millisecond
	leastPause   = 400 * time.Millisecond
	longestPause = 1400 * time.Millisecond
	// thinking is from a command to its output.
	thinking = 500 * time.Millisecond
)

// style of a picture. It brings its background, so that it looks the same on a
// light page and on a dark one. Where nothing moves all of it is seen.
const style = `
    text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; white-space: pre; }
    text { fill: #c9d1d9; animation: appear 1ms backwards; }
    .heading { fill: #ffffff; font-weight: bold; }
    .margin { fill: #484f58; }
    .command { fill: #ffffff; }
    .output { fill: #9ba5b0; }
    .warning { fill: #e3b341; }
    .error { fill: #ff7b72; }
    .success { fill: #56d364; font-weight: bold; }
    .admin { fill: #79c0ff; font-weight: bold; }
    .hans { fill: #56d4dd; font-weight: bold; }
    .anna { fill: #d2a8ff; font-weight: bold; }
    @keyframes appear { from { opacity: 0; } to { opacity: 1; } }
    @media (prefers-reduced-motion: reduce) { text { animation: none; } }
`

// goesOn is the class of a row that goes on with the line of the row before.
const goesOn = "on"

// Picture draws blocks as SVG: a terminal whose rows appear one after the other.
func Picture(title string, blocks []Block) string {
	var (
		body strings.Builder
		at   = firstPause
		n    int
	)

	for i, b := range blocks {
		if i > 0 {
			at += min(max(b.At-blocks[i-1].At, leastPause), longestPause)
		}

		output := at
		if b.Kind == Typed {
			output += thinking
		}

		all := rows(b, longest)
		if i == 0 || blocks[i-1].Kind == Omitted && b.Kind != Heading {
			all = slices.DeleteFunc(all, row.blank) // There is room enough.
		}

		for _, r := range all {
			appears := output
			if r.command() {
				appears = at
			}

			body.WriteString(r.draw(n, appears))

			n++
		}

		at = output
	}

	w, h := int(width*columnWidth)+2*padding, barHeight+n*rowHeight+2*padding

	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d"
  role="img" aria-label="%[3]s">
  <title>%[3]s</title>
  <style>%[4]s  </style>
  <rect width="%[1]d" height="%[2]d" rx="8" fill="#0d1117" stroke="#30363d"/>
  <circle cx="20" cy="17" r="6" fill="#ff5f57"/><circle cx="40" cy="17" r="6" fill="#febc2e"/><circle cx="60" cy="17" r="6" fill="#28c840"/>
%[5]s</svg>
`, w, h, escape(title), style, body.String())
}

// draw draws a row, the n-th, that appears at a time.
func (r row) draw(n int, at time.Duration) string {
	if r.blank() {
		return ""
	}

	var out strings.Builder

	class := ""
	if r.goesOn {
		class = fmt.Sprintf(` class=%q`, goesOn)
	}

	fmt.Fprintf(&out, `  <text xml:space="preserve" x="%d" y="%d"%s style="animation-delay:%dms">`,
		padding, barHeight+padding+(n+1)*rowHeight-baseline, class, at.Milliseconds())

	for _, s := range r.spans {
		if s.text != "" {
			fmt.Fprintf(&out, `<tspan class=%q>%s</tspan>`, s.style, escape(s.text))
		}
	}

	out.WriteString("</text>\n")

	return out.String()
}

func escape(text string) string {
	var out strings.Builder

	_ = xml.EscapeText(&out, []byte(text)) // A builder takes everything.

	return out.String()
}
