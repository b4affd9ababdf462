// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Limits of what is remembered, so that a long log needs no more memory than a short one.
const (
	// maxGroups is how many changes there are that are not alike; others count, and are not
	// shown.
	maxGroups = 10000
	// maxNames is how many objects and users are counted of each.
	maxNames = 1000
	// maxUsers are shown of each.
	maxUsers = 3
	// maxExamples are shown of each.
	maxExamples = 3
	// maxProblems are the lines that cannot be read of which each is shown.
	maxProblems = 100
)

// tally adds up verdicts, in the order of their lines.
type tally struct {
	Summary

	groups   map[changeKey]*group
	notKnown map[string]int
}

// group is a change, with what is counted of it.
type group struct {
	Change

	objects, users map[string]int
	// first is the place of the first in the log.
	first int
}

func newTally() *tally { return &tally{groups: map[changeKey]*group{}, notKnown: map[string]int{}} }

// at is a line of a log.
type at struct {
	log  string
	line int
}

// add adds a verdict on the decision of a line.
func (t *tally) add(where at, v verdict) {
	if v.err != nil {
		t.problem(where, v.err)

		return
	}

	if v.elsewhere {
		return
	}

	t.Decisions++

	switch {
	case len(v.unknown) > 0:
		t.Unknown++

		for _, what := range v.unknown {
			if _, known := t.notKnown[what]; known || len(t.notKnown) < maxGroups {
				t.notKnown[what]++
			}
		}
	case v.retried:
		t.Retried++
	case len(v.changes) == 0:
		t.AsRecorded++

		if v.otherwise {
			t.ByOthers++
		}
	default:
		t.change(where, v)
	}
}

func (t *tally) change(where at, v verdict) {
	t.Changed++

	switch v.now {
	case turnAllowed:
		t.Allowed++
	case turnUnallowed:
		t.Unallowed++
	case turnOther:
	}

	seen := map[changeKey]bool{}

	for _, c := range v.changes {
		g := t.group(c)
		if g == nil || seen[c.key] {
			continue // A decision counts once of each.
		}

		seen[c.key] = true

		g.add(where, c)
	}
}

// group is the one that a change belongs to; nil where there are too many.
func (t *tally) group(c change) *group {
	g := t.groups[c.key]
	if g == nil && len(t.groups) < maxGroups {
		g = &group{objects: map[string]int{}, users: map[string]int{}, first: len(t.groups)}
		g.Change = Change{
			Group: c.key.group, Kind: c.key.kind, Field: c.key.field, Before: c.key.before, After: c.key.after, Because: c.because,
			Masked: c.key.masked,
		}
		t.groups[c.key] = g
	}

	return g
}

func (g *group) add(where at, c change) {
	g.Decisions++

	_, namespace, name := about(c.record)
	object := namespace + "/" + name

	if g.objects[object] == 0 && len(g.Examples) < maxExamples {
		g.Examples = append(g.Examples, Example{
			Log: where.log, Line: where.line, Time: c.record.Time, Namespace: namespace, Name: name, Field: c.field,
			Operation: c.record.Operation, User: c.record.User.Name,
		})
	}

	g.MoreObjects = count(g.objects, object) || g.MoreObjects
	g.MoreUsers = count(g.users, c.record.User.Name) || g.MoreUsers
}

// count counts a name; true where there are too many names.
func count(names map[string]int, name string) bool {
	if _, ok := names[name]; !ok && len(names) >= maxNames {
		return true
	}

	names[name]++

	return false
}

// problem notes a line that cannot be read.
func (t *tally) problem(where at, err error) {
	if errors.Is(err, errTruncated) {
		t.Truncated++

		return
	}

	t.Unreadable++

	if len(t.Problems) < maxProblems {
		t.Problems = append(t.Problems, Problem{Log: where.log, Line: where.line, Message: err.Error()})
	}
}

// summary is all of it.
func (t *tally) summary() *Summary {
	out := t.Summary
	out.Changes, out.NotKnown = []Change{}, most(t.notKnown)
	out.Problems = append([]Problem{}, t.Problems...)

	groups := slices.SortedFunc(maps.Values(t.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.first, b.first))
	})

	for _, g := range groups {
		g.Objects = len(g.objects)

		if g.Users = most(g.users); len(g.Users) > maxUsers {
			g.Users, g.MoreUsers = g.Users[:maxUsers], true
		}

		out.Changes = append(out.Changes, g.Change)
	}

	return &out
}

// most are what is counted, the most first.
func most(counts map[string]int) []Count {
	out := make([]Count, 0, len(counts))
	for name, n := range counts {
		out = append(out, Count{Name: name, Decisions: n})
	}

	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), strings.Compare(a.Name, b.Name))
	})

	return out
}
