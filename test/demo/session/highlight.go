// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

// omission stands for blocks that are left out.
const omission = "⋮"

// A part of a story: blocks of one step.
type part struct {
	// step is its number, from 1.
	step int
	// skip and take say which of its blocks, without parts of objects; all that
	// follow if take is 0.
	skip, take int
}

// highlights are what the picture shows.
func highlights() []part {
	return []part{
		{step: 3},                   // The change of size, the gate, and how it ended.
		{step: 4, take: 4},          // anna's change, and what the Claim says.
		{step: 5, skip: 2, take: 2}, // The deletion.
		{step: 8},                   // The trace.
	}
}

// Highlights returns the blocks of a story that the picture shows. Where some of a
// step are left out, a block says so.
func Highlights(blocks []Block) []Block {
	var out []Block

	for _, p := range highlights() {
		seen, omitted := 0, false

		for _, b := range blocks {
			if b.Step != p.step {
				continue
			}

			if b.Kind == Heading {
				out = append(out, b)

				continue
			}

			taken := b.Kind != Shown && seen >= p.skip && (p.take == 0 || seen < p.skip+p.take)
			if b.Kind != Shown {
				seen++
			}

			if taken {
				out = append(out, b)
			} else if !omitted {
				out = append(out, Block{Kind: Omitted, Step: b.Step, At: b.At, Lines: []string{omission}})
			}

			omitted = !taken
		}
	}

	return out
}
