// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// What composition functions do that are not followed is known by what was seen alone, whoever
// recorded it: a field of what is composed was to change when some fields of the XR were.
// Which of them it follows from is
//
//  1. what a patch says, where one does;
//  2. a field that once was the only one;
//  3. of the times that these do not explain, what was changed each time. Where that are
//     several they cannot be told apart, and each is a guess.

// correlation is a field of what is composed, with each time that it was seen to change.
type correlation struct {
	child  schema.GroupKind
	target change.Pattern
	seen   []sighting
}

// sighting is one time.
type sighting struct {
	Observed

	// fields of the XR that were changed and that people edit, whatever place they have in
	// lists.
	fields []change.Pattern
}

// cause is a field of the XR that a correlated one follows from, as far as was seen.
type cause struct {
	field change.Pattern
	// seen are the times, and others what else was changed each time: it is a guess with any.
	seen   []sighting
	others []string
}

// observe adds what was seen of XRs to what patches say, of each Composition.
func (r *reader) observe(root *graph) error {
	if r.Observed == nil {
		return nil
	}

	all, done := slices.Collect(r.Observed), map[*graph]bool{}

	// What was seen may be an XR with a Composition of its own.
	for more := true; more; {
		more = false

		for _, g := range root.below() {
			if done[g] {
				continue
			}

			done[g], more = true, true
			g.copied = r.copied(g, all)

			for _, c := range r.correlate(g, all) {
				if err := r.explain(g, c); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

// correlate puts what was seen of the XRs of a Composition together by what changed.
func (r *reader) correlate(g *graph, all []Observed) []*correlation {
	var out []*correlation

	gk := g.kind.gvk().GroupKind()

	for _, o := range all {
		if o.Parent != gk || o.Composition != "" && o.Composition != g.name {
			continue
		}

		at := origin{patch: "seen " + o.where()}

		target, err := change.ParsePattern(anyIndex(o.ChildField))

		switch {
		case err != nil:
			r.problemf(g, at, "%s of %s cannot be read: %v", o.ChildField, o.Child.Kind, err)

			continue
		case o.ChildField == v1alpha1.MutationDelete:
			r.problemf(g, at, "%s %s was to be deleted: write a policy for that, if it may be", article(o.Child.Kind), o.Child.Kind)

			continue
		}

		i := slices.IndexFunc(out, func(c *correlation) bool { return c.child == o.Child && c.target.String() == target.String() })
		if i < 0 {
			i, out = len(out), append(out, &correlation{child: o.Child, target: target})
		}

		out[i].seen = append(out[i].seen, sighting{o, edited(o.ParentFields)})
	}

	return out
}

// copied are the fields that were seen to be copied from Claims. Whatever function composes,
// that Crossplane copies them is no guess.
func (r *reader) copied(g *graph, all []Observed) []cause {
	gk := g.kind.gvk().GroupKind()

	d := r.definition(gk)
	if d == nil {
		return nil
	}

	var out []cause

	for _, o := range all {
		if o.Child != gk || o.Parent.Group != gk.Group || o.Parent.Kind != claimKind(d) || o.Composition != "" && o.Composition != g.name {
			continue
		}

		for _, field := range edited(o.ParentFields) {
			i := slices.IndexFunc(out, func(c cause) bool { return c.field.String() == field.String() })
			if i < 0 {
				i, out = len(out), append(out, cause{field: field})
			}

			out[i].seen = append(out[i].seen, sighting{Observed: o})
		}
	}

	return out
}

// edited are those of some fields that people edit.
func edited(fields []string) []change.Pattern {
	var out []change.Pattern

	for _, text := range fields {
		p, err := change.ParsePattern(anyIndex(text))
		if err == nil && editable(p.Segments()) && !slices.ContainsFunc(out, same(p)) {
			out = append(out, p)
		}
	}

	return out
}

// explain adds what a correlated field follows from, and says where that is not known.
func (r *reader) explain(g *graph, c *correlation) error {
	recorded := slices.DeleteFunc(slices.Clone(c.seen), func(s sighting) bool { return len(s.fields) == 0 })
	if len(recorded) == 0 {
		r.problemf(g, origin{patch: "seen " + c.seen[0].where()}, "%s of %s follows from a change that is not recorded on the XR",
			c.seen[0].ChildField, c.child.Kind)

		return nil
	}

	rest := slices.DeleteFunc(recorded, func(s sighting) bool { return slices.ContainsFunc(s.fields, g.patches(c)) })
	if len(rest) == 0 {
		return nil
	}

	causes, unexplained := causesOf(rest)
	if len(unexplained) > 0 {
		r.problemf(g, origin{patch: "seen " + unexplained[0].where()},
			"%s of %s was to change %s, and no field of the XR was changed each time (%s): write a policy for it",
			c.target, c.child.Kind, times(len(unexplained)), changedWith(unexplained))
	}

	if len(causes) == 0 {
		return nil
	}

	to := r.seenResource(g, c.child, c.target)

	for _, cause := range causes {
		g.flows = append(g.flows, flow{
			from: placeOn(composite, nil, cause.field), to: placeOn(composedSide, to, c.target), at: origin{patch: cause.String()},
			order: len(g.flows), seen: true,
		})
	}

	return r.knowOne(g, to)
}

// patches reports of a field of the XR whether a patch writes it into a correlated field.
func (g *graph) patches(c *correlation) func(change.Pattern) bool {
	return func(field change.Pattern) bool {
		return slices.ContainsFunc(g.flows, func(f flow) bool {
			return f.from.side == composite && f.from.path.Covers(field.Segments()) && f.to.side == composedSide &&
				f.to.resource.groupKind() == c.child && f.to.path.Covers(c.target.Segments())
		})
	}
}

// causesOf are what some times have in common, and the times that it does not explain.
func causesOf(seen []sighting) ([]cause, []sighting) {
	var out []cause

	for _, s := range seen {
		if len(s.fields) == 1 && !slices.ContainsFunc(out, func(c cause) bool { return c.field.String() == s.fields[0].String() }) {
			out = append(out, cause{field: s.fields[0]})
		}
	}

	rest := seen

	for i := range out {
		out[i].seen = slices.DeleteFunc(slices.Clone(seen), func(s sighting) bool { return !s.has(out[i].field) })
		rest = slices.DeleteFunc(slices.Clone(rest), func(s sighting) bool { return s.has(out[i].field) })
	}

	if len(rest) == 0 {
		return out, nil
	}

	shared := common(rest)
	if len(shared) == 0 {
		return out, rest
	}

	for _, field := range shared {
		one := cause{field: field, seen: rest}

		for _, other := range shared {
			if other.String() != field.String() {
				one.others = append(one.others, other.String())
			}
		}

		out = append(out, one)
	}

	return out, nil
}

// has reports whether a field was changed, or something of it.
func (s sighting) has(field change.Pattern) bool {
	return slices.ContainsFunc(s.fields, func(f change.Pattern) bool { return field.Covers(f.Segments()) })
}

// common are the fields that were changed each time. Where one time all of a field was that
// another time something of was changed, it is all of it.
func common(seen []sighting) []change.Pattern {
	out := seen[0].fields

	for _, s := range seen[1:] {
		var both []change.Pattern

		for _, a := range out {
			for _, b := range s.fields {
				wider := a
				if b.Covers(a.Segments()) {
					wider = b
				} else if !a.Covers(b.Segments()) {
					continue
				}

				if !slices.ContainsFunc(both, same(wider)) {
					both = append(both, wider)
				}
			}
		}

		out = both
	}

	return out
}

// String says how often and where a cause was seen, and whether it is a guess.
func (c cause) String() string {
	out := "seen once " + c.seen[0].where()
	if n := len(c.seen); n > 1 {
		var names []string
		for _, s := range c.seen {
			names = appendNew(names, s.ParentName)
		}

		out = fmt.Sprintf("seen %s", times(n))
		if len(names) > 1 {
			out += fmt.Sprintf(" of %d XRs", len(names))
		}

		out += ", first " + c.seen[0].where()
	}

	if len(c.others) > 0 {
		out = fmt.Sprintf("GUESS, for %s changed with it each time: %s", isOrAre(c.others), out)
	}

	return out
}

func isOrAre(fields []string) string {
	if len(fields) == 1 {
		return fields[0] + " was"
	}

	return some(fields) + " were"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// maxTimes is of how many times a problem says what was changed.
const maxTimes = 3

// changedWith says of some times what was changed.
func changedWith(seen []sighting) string {
	var out []string

	for i, s := range seen {
		if i == maxTimes {
			out = append(out, fmt.Sprintf("and %d more", len(seen)-i))

			break
		}

		fields := make([]string, len(s.fields))
		for k, f := range s.fields {
			fields[k] = f.String()
		}

		text := some(fields)
		if s.At != "" {
			text += " at " + s.At
		}

		out = append(out, text)
	}

	return strings.Join(out, "; ")
}

// seenResource is the resource of the Composition that a change was seen of; one of its own
// where it has none of the kind.
func (r *reader) seenResource(g *graph, gk schema.GroupKind, target change.Pattern) *composed {
	if i := slices.IndexFunc(g.resources, func(c *composed) bool { return c.groupKind() == gk }); i >= 0 {
		return g.resources[i]
	}

	c := &composed{at: origin{resource: gk.Kind}, kind: typeRef{gk.Group + "/", gk.Kind}}
	c.managed = below(target.Segments(), fieldSpec, "forProvider") || below(target.Segments(), fieldSpec, "initProvider")
	g.resources = append(g.resources, c)

	return c
}
