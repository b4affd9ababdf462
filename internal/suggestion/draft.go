// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// writer writes policies.
type writer struct {
	*reader
	Options

	drafts []draft
	// general are notes on the Composition as a whole.
	general []string
}

// draft is a policy without a name yet.
type draft struct {
	Suggested

	// composition that it is suggested for.
	composition string
}

// draft adds a policy about changes of a kind.
func (w *writer) draft(
	g *graph, gk schema.GroupKind, fields []string, subjects []v1alpha1.Subject, allow []v1alpha1.Permission, comments ...string,
) {
	d := draft{composition: g.name}
	d.Comments = comments
	d.Policy.APIVersion, d.Policy.Kind = v1alpha1.GroupVersion().String(), "AllowancePolicy"
	d.Policy.Spec = v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{APIGroup: gk.Group, Kind: gk.Kind, Fields: fields}, Subjects: subjects, Allow: allow,
	}
	w.drafts = append(w.drafts, d)
}

// initiators are who may start a chain.
func (w *writer) initiators() []v1alpha1.Subject {
	if len(w.Subjects) == 0 {
		return []v1alpha1.Subject{ReplaceMe()}
	}

	return slices.Clone(w.Subjects)
}

// carriers are who carries on what others started, and starters those and who may start it.
func (w *writer) carriers() []v1alpha1.Subject { return []v1alpha1.Subject{w.Crossplane} }

func (w *writer) starters() []v1alpha1.Subject {
	return append(w.initiators(), w.carriers()...)
}

// root is what people edit: the Claim, or the XR where there are none.
func (w *writer) root(g *graph) (root schema.GroupKind, claimed bool) {
	gk := g.kind.gvk().GroupKind()

	d := w.definition(gk)
	if d == nil || claimKind(d) == "" {
		return gk, false
	}

	return schema.GroupKind{Group: gk.Group, Kind: claimKind(d)}, true
}

// level writes the policies about one XR. The first one is what people edit, or has Claims.
func (w *writer) level(l level, first bool) {
	gk := l.kind.gvk().GroupKind()
	root, claimed := w.root(l.graph)

	if first && w.definition(gk) == nil {
		w.problemf(l.graph, origin{}, "there is no CompositeResourceDefinition of %s: it is taken for one without Claims, "+
			"and which of its fields are always there is not known", gk)
	}

	if first && w.Create {
		w.draft(l.graph, root, []string{v1alpha1.MutationCreate}, w.initiators(), []v1alpha1.Permission{},
			fmt.Sprintf("Who may create %s %s. Without an Enforcement, others create it, too, with a warning. "+
				"Its parts need no policy until it has been ready once.", article(root.Kind), root.Kind))
	}

	groups := w.groups(l)

	if first && claimed {
		for _, g := range groups {
			w.claim(l.graph, root, g)
		}
	}

	for _, g := range groups {
		w.general = append(w.general, g.refused...)

		switch {
		case g.blocked():
		case first && !claimed:
			w.composite(l, gk, g, w.starters())
		case g.gates():
			w.composite(l, gk, g, w.carriers())
		}
	}
}

// claim writes the policy about a Claim's fields, which Crossplane copies to its XR.
func (w *writer) claim(g *graph, claim schema.GroupKind, fields group) {
	if fields.blocked() {
		return
	}

	gk := g.kind.gvk().GroupKind()
	paths := fields.paths()

	comments := []string{
		fmt.Sprintf("Who may change %s of %s %s, which Crossplane copies to its %s.", list(paths), article(claim.Kind), claim.Kind, gk.Kind),
	}

	if !fields.gates() {
		for _, c := range g.copied {
			if slices.ContainsFunc(fields.fields, same(c.field)) {
				comments = append(comments, fmt.Sprintf("- %s: %s", c, c.field))
			}
		}

		if len(comments) > 1 {
			comments = append(comments, "What follows from that was not seen yet: it shows once the XR has changed.")
		}
	}

	w.draft(g, claim, paths, w.starters(), []v1alpha1.Permission{{APIGroup: gk.Group, Kind: gk.Kind, Mutations: paths}}, comments...)
}

// composite writes the policy about fields of an XR.
func (w *writer) composite(l level, gk schema.GroupKind, g group, subjects []v1alpha1.Subject) {
	allow := g.permissions(w.External)
	if len(allow) == 0 {
		subjects = slices.DeleteFunc(subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate })
	}

	comments := []string{fmt.Sprintf("What follows from %s of %s %s:", list(g.paths()), article(gk.Kind), gk.Kind)}
	for _, why := range g.why {
		comments = append(comments, "- "+why)
	}

	if g.reported {
		comments = append(comments, "What one resource reports once it has changed reaches another one rounds later. Nobody asks for that by "+
			"itself: the allowance of this change, which serves until the XR has settled, lets it through.")
	}

	w.draft(l.graph, gk, g.paths(), subjects, allow, append(comments, w.breadth(l, g)...)...)
}

// breadth says what a policy allows besides, as policies name kinds and fields, and not
// resources.
func (w *writer) breadth(l level, g group) []string {
	var out []string

	for _, a := range g.allow {
		gk := a.resource.groupKind()

		var others []string

		for _, c := range l.resources {
			if c.groupKind() == gk && !slices.ContainsFunc(g.allow, func(b allowed) bool { return b.resource == c }) {
				others = appendNew(others, c.at.resource)
			}
		}

		if len(others) > 0 && !a.mutation.Pseudo() {
			out = appendNew(out, fmt.Sprintf("It is about every %s: %s of %s, too, where that waits to be changed.",
				gk.Kind, a.mutation, list(others)))
		}

		for _, s := range l.origins {
			for _, t := range s.targets {
				if t.resource.groupKind() == gk && !t.mutation.Pseudo() && len(t.mutation.Segments()) > len(a.mutation.Segments()) &&
					a.mutation.Covers(t.mutation.Segments()) && !slices.ContainsFunc(g.fields, same(s.path)) {
					out = appendNew(out, fmt.Sprintf("%s covers %s, which follows from %s.", a.mutation, t.mutation, s.path))
				}
			}
		}
	}

	return out
}

// deletions writes policies that let roots be deleted with what they stand for.
func (w *writer) deletions(levels []level) {
	first := levels[0].graph
	gk := first.kind.gvk().GroupKind()
	root, claimed := w.root(first)

	if !w.Delete {
		w.general = append(w.general, fmt.Sprintf("Deletion of %s %s: --delete suggests who may; see "+
			"\"Deleting a root, with what it stands for\" in the cookbook.", article(root.Kind), root.Kind))

		return
	}

	deletion := []string{v1alpha1.MutationDelete}
	if claimed {
		w.draft(first, root, deletion, w.initiators(), []v1alpha1.Permission{{APIGroup: gk.Group, Kind: gk.Kind, Mutations: deletion}},
			fmt.Sprintf("Who may delete %s %s, and its %s with it.", article(root.Kind), root.Kind, gk.Kind))
	}

	for i, l := range levels {
		allow := l.deletion(w.External)

		subjects := w.initiators()
		if claimed || i > 0 {
			subjects = nil // Who carries deletions out differs: Crossplane, or the garbage collector.
		}

		if len(allow) > 0 || subjects != nil {
			kind := l.kind.gvk().GroupKind()
			w.draft(l.graph, kind, deletion, subjects, allow, fmt.Sprintf("What goes with %s %s, outside, too.", article(kind.Kind), kind.Kind))
		}
	}
}

// deletion is what goes with an XR.
func (g *graph) deletion(external bool) []v1alpha1.Permission {
	out := []v1alpha1.Permission{}
	managed := false

	for _, c := range g.resources {
		gk := c.groupKind()
		managed = managed || c.managed

		if !slices.ContainsFunc(out, func(p v1alpha1.Permission) bool { return p.Kind == gk.Kind && p.APIGroup == gk.Group }) {
			out = append(out, v1alpha1.Permission{APIGroup: gk.Group, Kind: gk.Kind, Mutations: []string{v1alpha1.MutationDelete}})
		}
	}

	if managed && external {
		out = append(out, v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionDelete}})
	}

	return out
}

// paths are the fields of a group as text.
func (g *group) paths() []string {
	out := make([]string, len(g.fields))
	for i, f := range g.fields {
		out[i] = f.String()
	}

	return out
}

// blocked reports whether nothing can follow from the fields.
func (g *group) blocked() bool { return len(g.refused) > 0 && len(g.allow) == 0 }

// list writes a list for a person.
func list(texts []string) string {
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}

	return strings.Join(texts, "")
}

// article goes before the name of a kind.
func article(kind string) string {
	if kind != "" && strings.ContainsRune("AEIOX", rune(kind[0])) {
		return "an"
	}

	return "a"
}
