// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// paint colours lines of a diff on a terminal; the zero value does not.
type paint struct{ on bool }

// paintOf colours what is written to a terminal, unless NO_COLOR says otherwise.
//
// Source: https://no-color.org.
func paintOf(out io.Writer) paint {
	f, ok := out.(*os.File)

	return paint{ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) removed(line string) string { return p.as("31", line) }
func (p paint) added(line string) string   { return p.as("32", line) }
func (p paint) alarm(line string) string   { return p.as("1;31", line) }
func (p paint) heading(line string) string { return p.as("1", line) }

func (p paint) as(code, line string) string {
	if !p.on {
		return line
	}

	return "\x1b[" + code + "m" + line + "\x1b[0m"
}

// diff writes what is decided about as people read diffs: what is destroyed first, then under
// each object the field with its old and new value.
func (c choice) diff(p paint, now time.Time) string {
	var out strings.Builder

	root := c.change.Spec.ObjectRef
	entry := pendingEntryOf(c.change)

	out.WriteString(p.heading(rootText(root)+": "+counted(len(c.chosen), "change")+askedText(entry.Requesters)) + "\n")

	if since := sinceText(entry.Since, now); since != "" {
		out.WriteString("waits " + since + "\n")
	}

	if !entry.Current {
		out.WriteString("The list is from before the pipeline failed.\n")
	}

	for _, e := range c.destroyed() {
		out.WriteString(p.alarm("DESTROYS "+destroyedText(e, root)) + "\n")
	}

	last := ""

	for _, e := range c.chosen {
		if name := refText(e, root); name != last {
			out.WriteString("\n" + p.heading(name) + "\n")

			last = name
		}

		writeDiff(&out, p, e)
	}

	c.notes(&out)

	return out.String()
}

// writeDiff writes one change under its object.
func writeDiff(out *strings.Builder, p paint, e v1alpha1.HeldChange) {
	about := "  (" + causeText(e.Cause)
	if len(e.Follows) > 0 {
		about += "; the provider does: " + visible(strings.Join(e.Follows, ", "))
	}

	about += "; --change " + shortDigest(e.Digest) + ")"

	out.WriteString("  " + visible(e.Field) + about + "\n")

	switch e.Field {
	case v1alpha1.MutationCreate:
		writeLines(out, p.added, "  + ", "(the whole object)")
	case v1alpha1.MutationDelete:
		writeLines(out, p.removed, "  - ", "(the whole object)")
	}

	if e.From != "" {
		writeLines(out, p.removed, "  - ", e.From)
	}

	if e.To != "" {
		writeLines(out, p.added, "  + ", e.To)
	}

	if e.Masked {
		out.WriteString("  its value is hidden: any value of this field is let through, once\n")
	}

	if cut := cutText(e); cut != "" {
		out.WriteString("  " + cut + "\n")
	}
}

// writeLines writes each line of a value with a sign before it.
func writeLines(out *strings.Builder, colour func(string) string, sign, value string) {
	for _, line := range visibleLines(value) {
		out.WriteString(colour(sign+line) + "\n")
	}
}

// notes says what is not decided about, and what else it takes.
func (c choice) notes(out *strings.Builder) {
	root := c.change.Spec.ObjectRef

	if len(c.left)+len(c.granted) > 0 {
		out.WriteString("\n")
	}

	for _, e := range c.left {
		out.WriteString("Left out: " + describedChange(e, root) + ": " + unapprovable(e) + "\n")
	}

	for _, e := range c.granted {
		out.WriteString("Approved already, and being made: " + describedChange(e, root) + "\n")
	}

	if more := int(c.change.Status.Total) - len(c.change.Status.Changes); more > 0 {
		out.WriteString("\n" + counted(more, "more change") + " did not fit into the list, and can be decided about once these are made.\n")
	}
}
