// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// writer writes the message of a Kausality condition.
type writer struct {
	// head is the generation and phase.
	head string
	// rest is what there is to say beside what is held.
	rest []section
}

// section is a part of a message: how many of what there are, and what.
type section struct {
	what  string
	lines []string
}

// write returns the fullest message that is short enough: what is held with values and reasons, then
// with less of these, at last numbers alone. One that does not list names no children.
func (w *writer) write(xr *unstructured.Unstructured, held []Held, lists bool) string {
	if len(held) == 0 {
		return message.First(w.text(w.rest, ""), w.text(w.listed(""), ""), w.head)
	}

	total := len(held)

	for _, h := range held {
		if n, ok := allowance.MoreHeld(h.Change); ok {
			total += n - 1
		}
	}

	what, command := count(total, "change")+" held", howToList(xr, held)
	if held[0].Passed {
		what = count(total, "change") + " would be held"
	}

	if counted := []section{{what: what}}; !lists {
		return message.First(w.text(append(counted, w.rest...), command), w.text(counted, command), w.text(counted, ""), w.head)
	}

	var (
		out   []string
		lines []string
	)

	forms := []func(Held) string{Held.inWords, Held.inFew, Held.inFewer, Held.values, Held.subject}
	if len(held) == 1 {
		room := message.Room(w.text(append([]section{{what: what}}, w.rest...), ""), command) - len(colon)
		forms = slices.Insert(forms, 3, func(h Held) string { return h.start(room) }) //nolint:mnd // Before values.
	}

	for _, form := range forms {
		lines = make([]string, len(held))
		for i, h := range held {
			lines[i] = form(h)
		}

		out = append(out, w.text(append([]section{{what, lines}}, w.rest...), command))
	}

	w.rest = append([]section{{what, lines}}, w.rest...)

	if some := w.listed(command); len(some[0].lines) > 0 {
		out = append(out, w.text(some, command))
	}

	w.rest = w.rest[:1] // What is held before what else there is.

	return message.First(append(out, w.text(w.listed(command), command), w.text([]section{{what: what}}, command), w.head)...)
}

// listed are the sections with as much as fits of their lines.
func (w *writer) listed(command string) []section {
	out := make([]section, len(w.rest))
	for i, s := range w.rest {
		out[i] = section{what: s.what}
	}

	for i, s := range w.rest {
		const least, share = 20, 60 // Characters of lines that say something, and those that are left to the next section.

		room := message.Room(w.text(out, ""), command) - len(colon)
		if i+1 < len(w.rest) && room > 2*share {
			room -= share
		}

		if len(s.lines) > 0 && room >= least {
			out[i].lines = []string{message.Join(s.lines, room)}
		}
	}

	return out
}

// colon is before the lines of a section.
const colon = ": "

// text is a message of some sections.
func (w *writer) text(sections []section, command string) string {
	out, between := strings.Builder{}, ", "
	out.WriteString(w.head)

	for _, s := range sections {
		out.WriteString(between + s.what)

		between = ", "

		if len(s.lines) > 0 {
			out.WriteString(colon + strings.Join(s.lines, "; "))

			between = ". "
		}
	}

	return message.Then(out.String(), command)
}

// count is a number of things, with their name.
func count(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}

	return fmt.Sprintf("%d %ss", n, name)
}
