// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"regexp"
	"strings"
)

// A Section is a part of a Markdown page, from one heading to the next.
type Section struct {
	// Level of the heading, from 1; zero for what is above the first heading.
	Level int
	// Heading is its text.
	Heading string
	// Line of the heading, from 1.
	Line int
	// Text is all below the heading.
	Text string
	// Blocks are those in Text.
	Blocks []Block
}

// A Block is a fenced block of code.
type Block struct {
	// Language is what follows the opening fence.
	Language string
	// Line of the opening fence, from 1.
	Line int
	// Text between the fences.
	Text string
}

// fence begins and ends a block.
const fence = "```"

// heading begins a section.
var heading = regexp.MustCompile(`^(#+) (.+)$`)

// Sections reads a page. The first section is what is above the first heading, be it nothing.
func Sections(page string) []Section {
	out := []Section{{}}
	open := false

	for i, line := range strings.SplitAfter(page, "\n") {
		trimmed, last := strings.TrimSpace(line), &out[len(out)-1]
		m := heading.FindStringSubmatch(trimmed)

		switch {
		case strings.HasPrefix(trimmed, fence):
			if open = !open; open {
				last.Blocks = append(last.Blocks, Block{Language: strings.TrimPrefix(trimmed, fence), Line: i + 1})
			}
		case open:
			last.Blocks[len(last.Blocks)-1].Text += line
		case m != nil:
			out = append(out, Section{Level: len(m[1]), Heading: m[2], Line: i + 1})

			continue
		}

		last.Text += line
	}

	return out
}

// Blocks are those of a page in a language.
func Blocks(page, language string) []Block {
	var out []Block

	for _, s := range Sections(page) {
		for _, b := range s.Blocks {
			if b.Language == language {
				out = append(out, b)
			}
		}
	}

	return out
}

// unlinked is what anchors leave out of headings.
var unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Anchor returns what a heading is linked by.
func Anchor(heading string) string {
	return strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
