// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// know finds out of what kind the resources of a graph are, and reads the Compositions of
// XRs among them.
func (r *reader) know(g *graph) error {
	for _, c := range g.resources {
		r.noteKindPatched(g, c)

		if err := r.knowOne(g, c); err != nil {
			return err
		}
	}

	return nil
}

// knowOne finds out of what kind one resource is.
func (r *reader) knowOne(g *graph, c *composed) error {
	gvk := c.kind.gvk()
	gk := gvk.GroupKind()

	switch c.managed = c.managed || r.isManaged(g, c, gvk); {
	case c.managed || resource.BuiltIn(gk.Group) || c.nested != nil:
	case r.claims(gk):
		r.problemf(g, c.at, "%s is a Claim: what its XR composes is not followed; suggest policies for that Composition, too", gk.Kind)
	case r.isComposite(gk):
		return r.nest(g, c, gk)
	case r.kind(gk) == nil:
		r.problemf(g, c.at, "it is not known whether %s is an XR, which composes something itself: "+
			"give its CustomResourceDefinition, or its CompositeResourceDefinition and Composition", gk)
	}

	return nil
}

// noteKindPatched notes that another kind may come of a base.
func (r *reader) noteKindPatched(g *graph, c *composed) {
	for _, f := range g.flows {
		path := f.to.path.Segments()
		if f.to.resource == c && f.to.side == composedSide && (below(path, "kind") || below(path, "apiVersion")) {
			r.problemf(g, f.at, "it writes %s: it is taken for %s %s, as its base says", f.to.path, article(c.kind.Kind), c.kind.Kind)
		}
	}
}

// isManaged reports whether a resource is a managed resource: its base, a patch or its
// definition has what only these have.
func (r *reader) isManaged(g *graph, c *composed, gvk schema.GroupVersionKind) bool {
	if resource.Map(c.base, fieldSpec, "forProvider") != nil || slices.ContainsFunc(g.flows, func(f flow) bool {
		path := f.to.path.Segments()

		return f.to.resource == c && (below(path, fieldSpec, "forProvider") || below(path, fieldSpec, "initProvider"))
	}) {
		return true
	}

	s := property(r.schemaOf(gvk), fieldpath.Field(fieldSpec))

	return s != nil && property(s, fieldpath.Field("forProvider")) != nil
}

// isComposite reports whether a kind is known to be of XRs.
func (r *reader) isComposite(gk schema.GroupKind) bool {
	return r.definition(gk) != nil || len(r.compositionsOf(gk)) > 0
}

// compositionsOf are the Compositions for a kind of XRs.
func (r *reader) compositionsOf(gk schema.GroupKind) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for _, u := range r.Compositions {
		ref := resource.Map(u.Object, fieldSpec, "compositeTypeRef")
		if (typeRef{resource.String(ref, "apiVersion"), resource.String(ref, "kind")}).gvk().GroupKind() == gk {
			out = append(out, u)
		}
	}

	return out
}

// nest reads the Composition of an XR that is composed.
func (r *reader) nest(g *graph, c *composed, gk schema.GroupKind) error {
	candidates := r.compositionsOf(gk)

	name := r.named(c, gk)
	if name != "" {
		candidates = slices.DeleteFunc(candidates, func(u *unstructured.Unstructured) bool { return u.GetName() != name })
	}

	switch len(candidates) {
	case 1:
	case 0:
		r.problemf(g, c.at, "%s is an XR, and its Composition %sis not there: what it composes is not followed", gk.Kind, quoted(name))

		return nil
	default:
		r.problemf(g, c.at, "%s is an XR, and there are %d Compositions for it: which one is taken is not known, and what it composes "+
			"is not followed; give one of them, or suggest policies for each", gk.Kind, len(candidates))

		return nil
	}

	nested, err := r.read(candidates[0])
	if err != nil {
		return err
	}

	if slices.Contains(r.reading, nested) {
		r.problemf(g, c.at, "it is an XR with the same Composition %s again, which is followed once", nested.name)

		return nil
	}

	c.nested = nested

	return nil
}

func quoted(name string) string {
	if name == "" {
		return ""
	}

	return name + " "
}

// named is the Composition that an XR is to have, by its base or its definition; empty
// where neither says.
func (r *reader) named(c *composed, gk schema.GroupKind) string {
	if name := composedBy(&unstructured.Unstructured{Object: c.base}); name != "" {
		return name
	}

	d := r.definition(gk)
	if d == nil {
		return ""
	}

	if name := resource.String(d.Object, fieldSpec, "enforcedCompositionRef", "name"); name != "" {
		return name
	}

	return resource.String(d.Object, fieldSpec, "defaultCompositionRef", "name")
}

// checkSides notes flows that lead nowhere, or come from nowhere that can be followed.
func (r *reader) checkSides(g *graph) {
	for _, f := range g.flows {
		from, to := f.from.path.Segments(), f.to.path.Segments()

		switch {
		case f.to.side == composite && !below(to, fieldStatus) && g.pipeline:
			r.notes = append(r.notes, f.at.prefix()+"it writes "+f.to.path.String()+
				" of the XR: of what functions want of an XR Crossplane takes the status alone")
		case f.to.side == composite && !below(to, fieldStatus):
			r.problemf(g, f.at, "it writes %s of the XR, which nobody's change leads to: it is not followed", f.to.path)
		case f.from.side == environment && !g.fed(f):
			r.problemf(g, f.at, "it reads %s of the environment, which comes from an EnvironmentConfig or another function: "+
				"whose change that is cannot be told; an UpgradeAllowance lets it through", f.from.path)
		case f.from.side == composite && below(from, fieldStatus) && !g.fed(f):
			r.problemf(g, f.at, "it reads %s of the XR, which no patch of the Composition writes: "+
				"it cannot be followed to anybody's change", f.from.path)
		}
	}
}

// fed reports whether a patch writes what another one reads.
func (g *graph) fed(reads flow) bool {
	return slices.ContainsFunc(g.flows, func(f flow) bool {
		return f.to.side == reads.from.side && f.to.path.Overlaps(reads.from.path) && (f.to.side != environment || f.order < reads.order)
	})
}
