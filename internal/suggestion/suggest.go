// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Suggest suggests policies for a Composition. The error says which Composition cannot be
// read at all.
func Suggest(m Material, o Options) (Suggestion, error) {
	// 1. What feeds what, in it and in the Compositions of XRs that it composes.
	r := &reader{Material: &m, silent: o.Silent, graphs: map[string]*graph{}}

	g, err := r.read(m.Composition)
	if err != nil {
		return Suggestion{}, err
	}

	if err := r.observe(g); err != nil {
		return Suggestion{}, err
	}

	// 2. What follows from which field of the XR, and of XRs further down.
	levels := r.levels(g)

	// 3. A policy for all fields that lead to the same.
	w := &writer{reader: r, Options: o}
	for i, l := range levels {
		w.level(l, i == 0)
	}

	w.deletions(levels)
	w.note(levels)

	// 4. Names, and whether what is suggested holds by what is known of kinds.
	w.name()

	out := Suggestion{Composition: g.name, Notes: append(w.general, r.notes...), Problems: r.problems}
	for _, d := range w.drafts {
		out.Policies = append(out.Policies, d.Suggested)
	}

	out.Problems = append(out.Problems, w.check(out.Policies)...)

	return out, nil
}

// level is one XR with its Composition, and what follows from its fields.
type level struct {
	*graph

	origins []source
	// followed are the flows that a change of some field of the XR leads to.
	followed map[int]bool
}

// source is a field of an XR, and what follows from it.
type source struct {
	path    change.Pattern
	targets []target
}

// levels are the XR, and those that it composes, from the outside in: each with the fields
// that a change may reach.
func (r *reader) levels(root *graph) []level {
	reached := map[*graph][]change.Pattern{}
	order := root.below()

	for more := true; more; {
		more = false

		for i, g := range order {
			for n, fields := range r.sources(g, reached[g], i == 0).reached() {
				for _, f := range fields {
					if !slices.ContainsFunc(reached[n], same(f)) {
						reached[n], more = append(reached[n], f), true
					}
				}
			}
		}
	}

	out := make([]level, len(order))
	for i, g := range order {
		out[i] = r.sources(g, reached[g], i == 0)
	}

	return out
}

// below are the graph and those of XRs that it composes, from the outside in.
func (g *graph) below() []*graph {
	out := []*graph{g}

	for i := 0; i < len(out); i++ {
		for _, c := range out[i].resources {
			if c.nested != nil && !slices.Contains(out, c.nested) {
				out = append(out, c.nested)
			}
		}
	}

	return out
}

// reached are the fields of XRs that are composed which a change may reach.
func (l level) reached() map[*graph][]change.Pattern {
	out := map[*graph][]change.Pattern{}

	for _, s := range l.origins {
		for _, t := range s.targets {
			if n := t.resource.nested; n != nil && !t.mutation.Pseudo() {
				out[n] = append(out[n], t.mutation)
			}
		}
	}

	return out
}

// same reports whether a path is another one.
func same(a change.Pattern) func(change.Pattern) bool {
	return func(b change.Pattern) bool { return a.String() == b.String() }
}

// sources are the fields of an XR that patches read: all of them, or those that are reached.
func (r *reader) sources(g *graph, reached []change.Pattern, all bool) level {
	out := level{graph: g, followed: map[int]bool{}}
	schema := r.schemaOf(g.kind.gvk())

	for _, f := range g.flows {
		path := f.from.path
		if f.from.side != composite || !editable(path.Segments()) || slices.ContainsFunc(out.origins, func(s source) bool {
			return s.path.String() == path.String()
		}) {
			continue
		}

		// What was seen was reached, whatever led there: labels of an XR that is composed are nothing
		// to be asked about before a policy names them.
		if !all && !f.seen && !slices.ContainsFunc(reached, path.Overlaps) {
			continue
		}

		w := g.walk()
		w.source(same(path), always(schema, path.Segments()))

		for order := range w.followed {
			out.followed[order] = true
		}

		out.origins = append(out.origins, source{path, w.targets})
	}

	for _, c := range g.copied {
		if all && !slices.ContainsFunc(out.origins, func(s source) bool { return s.path.Covers(c.field.Segments()) }) {
			out.origins = append(out.origins, source{path: c.field})
		}
	}

	return out
}

// machinery are the fields of XRs and Claims that are Crossplane's own.
var machinery = []string{ //nolint:gochecknoglobals // A constant that Go has no way to write.
	"crossplane", "claimRef", "resourceRef", "resourceRefs", "environmentConfigRefs", "compositionRef", "compositionSelector",
	"compositionRevisionRef", "compositionRevisionSelector", "compositionUpdatePolicy", "compositeDeletePolicy",
	"writeConnectionSecretToRef", "publishConnectionDetailsTo",
}

// editable reports whether a field of an XR is one that people change: of spec, or a label
// or an annotation.
func editable(path change.Path) bool {
	switch {
	case below(path, fieldMetadata, "labels"), below(path, fieldMetadata, "annotations"):
		return true
	case !below(path, fieldSpec):
		return false
	default:
		return len(path) == 1 || !slices.Contains(machinery, path[1].Field)
	}
}
