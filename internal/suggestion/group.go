// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// maxItems is how many fields, mutations and permissions a policy has at most.
const maxItems = 64

// group is what has the same consequences: one policy is about it.
type group struct {
	fields []change.Pattern
	allow  []allowed
	// refused are fields that are not suggested, with why.
	refused []string
	// why says how it follows, and reported is true where some of it follows from what a
	// resource reports.
	why      []string
	reported bool
}

// allowed is a field of a kind that may follow.
type allowed struct {
	target

	// external is true where it has to do with an external object.
	external bool
}

func (a allowed) key() string {
	return fmt.Sprintf("%s %s %t", a.resource.groupKind(), a.mutation, a.external)
}

// compare orders what may follow by kind and field, creation first.
func compareAllowed(a, b allowed) int {
	x, y := a.resource.groupKind(), b.resource.groupKind()

	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Group, y.Group),
		cmp.Compare(pseudoLast(a.mutation), pseudoLast(b.mutation)), cmp.Compare(a.mutation.String(), b.mutation.String()))
}

func pseudoLast(p change.Pattern) int {
	if p.Pseudo() {
		return 0
	}

	return 1
}

// groups puts the fields together that lead to the same.
func (w *writer) groups(l level) []group {
	var out []group

	keys := map[string]int{}

	for _, s := range l.origins {
		g := w.group(l, s)

		all := make([]string, len(g.allow))
		for i, a := range g.allow {
			all[i] = a.key()
		}

		key := strings.Join(all, "\n")
		if len(g.refused) > 0 && len(g.allow) == 0 {
			key = "refused " + s.path.String() // Each says why.
		}

		i, ok := keys[key]
		if !ok {
			keys[key] = len(out)
			out = append(out, g)

			continue
		}

		if len(out[i].fields) == maxItems {
			keys[key] = len(out)
			out = append(out, g)

			continue
		}

		out[i].fields = append(out[i].fields, g.fields...)
		out[i].refused = append(out[i].refused, g.refused...)
		out[i].why = appendNew(out[i].why, g.why...)
		out[i].reported = out[i].reported || g.reported
	}

	return out
}

// group is what one field leads to, as far as it is gated and can be done in place.
func (w *writer) group(l level, s source) group {
	out := group{fields: []change.Pattern{s.path}}

	if why := fixed(w.schemaOf(l.kind.gvk()), s.path.Segments()); why != "" {
		out.refused = append(out.refused, fmt.Sprintf("%s of %s %s stays as it is: %s. No policy is about it.",
			s.path, article(l.kind.Kind), l.kind.Kind, why))

		return out
	}

	for _, t := range s.targets {
		path := t.mutation.Segments()
		if identifies(path) {
			out.refused = append(out.refused, fmt.Sprintf("%s -> %s of %s: another one is another object, which no policy that is suggested lets "+
				"Crossplane make in its place.", s.path, t.mutation, t.resource.name()))

			continue
		}

		if !t.mutation.Pseudo() && ungated(path) && !w.named(t) {
			out.why = appendNew(out.why, t.why+" (labels and annotations of what is composed need no policy)")

			continue
		}

		if why := fixed(w.schemaOf(t.resource.kind.gvk()), path); why != "" && !t.mutation.Pseudo() {
			out.refused = append(out.refused, fmt.Sprintf("%s -> %s of %s: it cannot be updated in place: %s. No policy lets it follow: "+
				"see \"Another engine is another database\" in the cookbook.", s.path, t.mutation, t.resource.name(), why))

			continue
		}

		out.why = appendNew(out.why, t.why)
		out.reported = out.reported || t.reported
		out.add(allowed{t, t.resource.managed && (t.mutation.Pseudo() || outside(path))})
	}

	slices.SortFunc(out.allow, compareAllowed)

	return out
}

// identifies reports whether a field says which object it is.
func identifies(path change.Path) bool {
	return below(path, "apiVersion") || below(path, "kind") || below(path, fieldMetadata, "name") || below(path, fieldMetadata, "namespace")
}

// add adds what may follow, once.
func (g *group) add(a allowed) {
	if !slices.ContainsFunc(g.allow, func(b allowed) bool { return a.key() == b.key() }) {
		g.allow = append(g.allow, a)
	}
}

// named reports whether a label or annotation of an XR that is composed is one that its own
// Composition reads: then a policy names it, and it is gated.
func (w *writer) named(t target) bool {
	n := t.resource.nested

	return n != nil && below(t.mutation.Segments(), fieldMetadata) && slices.ContainsFunc(n.flows, func(f flow) bool {
		return f.from.side == composite && editable(f.from.path.Segments()) && f.from.path.Overlaps(t.mutation)
	})
}

func appendNew(list []string, more ...string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}

	return list
}

// gates reports whether something that is gated follows.
func (g *group) gates() bool { return len(g.allow) > 0 }

// permissions are what may follow, as a policy allows it.
func (g *group) permissions(external bool) []v1alpha1.Permission {
	out := []v1alpha1.Permission{}

	var verbs []string

	for _, a := range g.allow {
		gk := a.resource.groupKind()
		if n := len(out) - 1; n >= 0 && out[n].Kind == gk.Kind && out[n].APIGroup == gk.Group && len(out[n].Mutations) < maxItems {
			out[n].Mutations = appendNew(out[n].Mutations, a.mutation.String())
		} else {
			out = append(out, v1alpha1.Permission{APIGroup: gk.Group, Kind: gk.Kind, Mutations: []string{a.mutation.String()}})
		}

		if a.external && external {
			verb := management.ActionUpdate
			if a.mutation.Pseudo() {
				verb = management.ActionCreate
			}

			verbs = appendNew(verbs, verb)
		}
	}

	if len(verbs) > 0 {
		slices.Sort(verbs)
		out = append(out, v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: verbs})
	}

	return out
}
