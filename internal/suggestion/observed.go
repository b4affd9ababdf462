// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Observed is one change of a composed resource that was seen, whether it was held or, in
// mode Audit, let through.
type Observed struct {
	// Parent is the kind of the XR, and ParentName its name, with its namespace where it has
	// one: NAMESPACE/NAME.
	Parent     schema.GroupKind
	ParentName string
	// ParentFields are those of the XR that were changed with it; empty where that is not
	// known.
	ParentFields []string
	// Child is the kind of the composed resource; without a group where that is not known.
	Child schema.GroupKind
	// ChildField that changed, with concrete indices, or create or delete.
	ChildField string
	// User who changed the XR, or the Claim; empty where that is not known.
	User string
}

// HeldOf are the changes that composition functions report of XRs as held, or in mode Audit
// as passed. Which fields of the XR they followed from is what is recorded of its newest
// generation: what was allowed, and what was stored without.
func HeldOf(composites []*unstructured.Unstructured) iter.Seq[Observed] {
	return func(yield func(Observed) bool) {
		for _, xr := range composites {
			fields, user := newest(xr)
			c, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality)
			held, _, _ := composition.HeldIn(c.Message)

			for _, h := range held {
				kind, rest, _ := strings.Cut(h.Resource, " ")
				if h.Resource == xr.GetKind()+" "+xr.GetName() || strings.HasPrefix(h.Field, "(") {
					continue // It is of the XR itself, or stands for those that are left out.
				}

				o := Observed{
					Parent: xr.GroupVersionKind().GroupKind(), ParentName: nameOf(xr), ParentFields: fields,
					Child: childOf(xr, kind, rest), ChildField: h.Field, User: user,
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

func nameOf(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// newest are the fields of an XR that its newest generation changed, as far as it is
// recorded, and who did.
func newest(xr *unstructured.Unstructured) (fields []string, user string) {
	entries, _ := allowance.ParseTrace(xr) // What cannot be read tells nothing.

	for _, e := range entries {
		if e.Generation == resource.Generation(xr) && e.Field != v1alpha1.MutationCreate {
			fields, user = appendNew(fields, e.Field), e.Initiator
		}
	}

	edits, _ := allowance.ParseEdits(xr)

	for _, e := range edits {
		if !strings.HasPrefix(e.Field, "(") { // Not what stands for those that are left out.
			fields, user = appendNew(fields, e.Field), e.User
		}
	}

	return fields, user
}

// childOf is the kind of a composed resource that a condition names; without its group
// where the XR does not refer to it.
func childOf(xr *unstructured.Unstructured, kind, name string) schema.GroupKind {
	var found []schema.GroupKind

	for _, ref := range resource.Composed(xr) {
		gk := ref.GroupKind()
		if ref.Kind != kind {
			continue
		}

		if ref.Name == name {
			return gk
		}

		if !slices.Contains(found, gk) {
			found = append(found, gk)
		}
	}

	if len(found) == 1 {
		return found[0]
	}

	return schema.GroupKind{Kind: kind}
}

// observe adds what was seen of the XRs of a Composition to what its patches say.
func (r *reader) observe(g *graph) error {
	if r.Observed == nil {
		return nil
	}

	gk := g.kind.gvk().GroupKind()

	for o := range r.Observed {
		if o.Parent != gk {
			continue
		}

		at := origin{patch: fmt.Sprintf("seen of %s %s", gk.Kind, o.ParentName)}
		if o.User != "" {
			at.patch += ", changed by " + o.User
		}

		target, err := change.ParsePattern(anyIndex(o.ChildField))

		switch {
		case err != nil:
			r.problemf(g, at, "%s of %s cannot be read: %v", o.ChildField, o.Child.Kind, err)
		case o.ChildField == v1alpha1.MutationDelete:
			r.problemf(g, at, "%s %s was to be deleted: write a policy for that, if it may be", article(o.Child.Kind), o.Child.Kind)
		case len(o.ParentFields) == 0:
			r.problemf(g, at, "%s of %s follows from a change that is not recorded on the XR", o.ChildField, o.Child.Kind)
		default:
			if err := r.seen(g, at, o, target); err != nil {
				return err
			}
		}
	}

	return nil
}

// seen adds one change that was seen, unless a patch says it already.
func (r *reader) seen(g *graph, at origin, o Observed, target change.Pattern) error {
	c := r.seenResource(g, o.Child, target)

	for _, text := range o.ParentFields {
		source, err := change.ParsePattern(anyIndex(text))
		if err != nil || !editable(source.Segments()) {
			continue
		}

		if slices.ContainsFunc(g.flows, func(f flow) bool {
			return f.from.side == composite && f.from.path.Covers(source.Segments()) && f.to.side == composedSide &&
				f.to.resource.groupKind() == o.Child && f.to.path.Covers(target.Segments())
		}) {
			continue
		}

		where := at
		if len(o.ParentFields) > 1 {
			where.patch += fmt.Sprintf(", with %s: which of them it follows from is to be checked", list(o.ParentFields))
		}

		g.flows = append(g.flows, flow{
			from: placeOn(composite, nil, source), to: placeOn(composedSide, c, target), at: where, order: len(g.flows),
		})
	}

	return r.knowOne(g, c)
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

// anyIndex is a field with any index in place of each: in another object the element is
// somewhere else.
func anyIndex(text string) string {
	path, err := fieldpath.Parse(text)
	if err != nil {
		return text
	}

	for i, s := range path {
		if s.Type == fieldpath.SegmentIndex {
			path[i] = fieldpath.Field("*")
		}
	}

	return path.String()
}
