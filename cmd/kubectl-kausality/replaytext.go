// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/replay"
)

// replayText is what replay prints for people.
func replayText(s *replay.Summary, took time.Duration, width int) string {
	var out strings.Builder

	for i := range s.Changes {
		out.WriteString(wrap(changeText(&s.Changes[i]), width))
	}

	for _, n := range s.NotKnown {
		out.WriteString(wrap(fmt.Sprintf("cannot be known: %s\n  %s\n", n.Name, plural(n.Decisions, "decision")), width))
	}

	for _, p := range s.Problems {
		where := p.Log
		if p.Line > 0 {
			where += ":" + strconv.Itoa(p.Line)
		}

		fmt.Fprintf(&out, "%s: %s\n", where, p.Message)
	}

	fmt.Fprintf(&out, "%s replayed in %s: %s\n", plural(s.Decisions, "decision"), took.Round(100*time.Millisecond), sums(s))

	return out.String()
}

// changeText is a change for people, in three lines.
func changeText(c *replay.Change) string {
	var out strings.Builder

	fmt.Fprintf(&out, "%s: %s -> %s", strings.TrimSpace(c.Kind+" "+c.Field), c.Before, c.After)

	if c.Because != "" {
		out.WriteString(", " + c.Because)
	}

	if c.Masked {
		out.WriteString(" (credentials are masked in the log: it may differ for that)")
	}

	objects := plural(c.Objects, "object")
	if c.MoreObjects {
		objects = "more than " + objects
	}

	users := make([]string, len(c.Users))
	for i, u := range c.Users {
		users[i] = cmp.Or(u.Name, "nobody")
	}

	by := strings.Join(users, ", ")
	if c.MoreUsers {
		by += " and others"
	}

	fmt.Fprintf(&out, "\n  %s about %s, by %s\n", plural(c.Decisions, "decision"), objects, by)

	for _, e := range c.Examples {
		name := e.Name
		if e.Namespace != "" {
			name = e.Namespace + "/" + name
		}

		fmt.Fprintf(&out, "  %s %s at %s, %s:%d\n", e.Operation, name, e.Time.Format(time.RFC3339), e.Log, e.Line)
	}

	return out.String()
}

// sums are how many decisions came to what.
func sums(s *replay.Summary) string {
	parts := []string{grouped(s.AsRecorded) + " as recorded"}

	if s.ByOthers > 0 {
		parts[0] += fmt.Sprintf(" (%s of them for another reason)", grouped(s.ByOthers))
	}

	changed := grouped(s.Changed) + " " + verb(s.Changed, "changes", "change")

	if s.Changed > 0 {
		changed += fmt.Sprintf(": %s would be allowed, %s would not", grouped(s.Allowed), grouped(s.Unallowed))
	}

	if other := s.Changed - s.Allowed - s.Unallowed; other > 0 {
		changed += fmt.Sprintf(", %s otherwise", grouped(other))
	}

	parts = append(parts, changed)

	for _, more := range []struct {
		n         int
		one, many string
	}{
		{s.Unknown, "cannot be known", "cannot be known"},
		{s.Retried, "was to be asked again, and is not compared", "were to be asked again, and are not compared"},
		{int(s.Dropped), "was left out of the log", "were left out of the log"},
		{s.Skipped, "line is of no known kind or version", "lines are of no known kind or version"},
		{s.Unreadable, "line cannot be read", "lines cannot be read"},
		{s.Truncated, "log ends within a line", "logs end within a line"},
	} {
		if more.n > 0 {
			parts = append(parts, grouped(more.n)+" "+verb(more.n, more.one, more.many))
		}
	}

	return strings.Join(parts, "; ")
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}

	return many
}

// plural is a number of things.
func plural(n int, thing string) string { return grouped(n) + " " + verb(n, thing, thing+"s") }

// grouped is a number with its thousands set apart.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}

	return text
}
