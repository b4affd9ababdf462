// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// target is a field of what is composed that follows from a field of the XR.
type target struct {
	resource *composed
	// mutation is the field, or create.
	mutation change.Pattern
	// why says how it follows, in one line.
	why string
	// reported is true where it follows from what another resource reports.
	reported bool
}

// walk follows what a change leads to, in one graph.
type walk struct {
	*graph

	targets []target
	// statuses are the fields of the XR's status that may change.
	statuses []change.Pattern
	// followed are the flows that were, by their order.
	followed map[int]bool
	seen     map[string]bool
}

func (g *graph) walk() *walk {
	return &walk{graph: g, followed: map[int]bool{}, seen: map[string]bool{}}
}

// creation is the mutation that makes a resource.
func creation() change.Pattern {
	p, _ := change.ParsePattern(v1alpha1.MutationCreate) // It is one.

	return p
}

// source follows a field of the XR, as patches name it, or as it may be a part of what they
// name. What depends on whether it is there at all depends on whether it always is.
func (w *walk) source(is func(change.Pattern) bool, always bool) {
	for _, f := range w.flows {
		if f.from.side == composite && is(f.from.path) {
			w.along(f, trail{always: always})
		}
	}
}

// trail is what leads to a flow.
type trail struct {
	// text says it; empty for a change of the XR itself.
	text string
	// always is true where there has been a value all the time.
	always bool
	// reported is true once it has led through what a resource reports.
	reported bool
}

// along follows a flow.
func (w *walk) along(f flow, t trail) {
	key := fmt.Sprint(f.order, t.always)
	if w.seen[key] {
		return
	}

	w.seen[key], w.followed[f.order] = true, true
	text := fmt.Sprintf("%s: %s -> %s", f.at, f.from.path, f.to.path)

	if f.narrows {
		text += " (some values may make the same of it)"
	}

	if t.text != "" {
		text = t.text + "; then " + text
	}

	t.text = text

	switch f.to.side {
	case composedSide:
		w.reach(f.to.resource, f.to.path, t)

		if f.required && !t.always {
			t.text += " (without it the resource is not made)"
			w.reach(f.to.resource, creation(), t)
		}
	case composite:
		if below(f.to.path.Segments(), fieldStatus) {
			w.report(f.to.path, t)
		}
	case environment:
		for _, next := range w.flows {
			if next.from.side == environment && next.order > f.order && next.from.path.Overlaps(f.to.path) {
				w.along(next, t)
			}
		}
	}
}

// report follows a field of the XR's status.
func (w *walk) report(path change.Pattern, t trail) {
	if !slices.ContainsFunc(w.statuses, same(path)) {
		w.statuses = append(w.statuses, path)
	}

	for _, f := range w.flows {
		if f.from.side == composite && below(f.from.path.Segments(), fieldStatus) && f.from.path.Overlaps(path) {
			w.along(f, t)
		}
	}
}

// reach notes a change of a composed resource, and follows what it reports. What it
// reports was there before, unless it is only made now.
func (w *walk) reach(c *composed, mutation change.Pattern, t trail) {
	if slices.ContainsFunc(w.targets, func(t target) bool { return t.resource == c && t.mutation.String() == mutation.String() }) {
		return
	}

	w.targets = append(w.targets, target{c, mutation, t.text, t.reported})
	t.always = !mutation.Pseudo()

	for _, f := range w.flows {
		if f.from.side == composedSide && f.from.resource == c && w.reports(c, mutation, f.from.path) {
			next := t
			next.reported = t.reported || below(f.from.path.Segments(), fieldStatus)
			w.along(f, next)
		}
	}
}

// reports says whether a change of a field of a composed resource may change another
// one that is read of it.
func (w *walk) reports(c *composed, changed, read change.Pattern) bool {
	path := read.Segments()

	switch {
	case changed.Pseudo():
		return true
	case !below(path, fieldStatus):
		return changed.Overlaps(read)
	case ungated(changed.Segments()) && c.nested == nil:
		return false // What is reported does not depend on labels.
	case c.nested != nil:
		return c.nested.reports(changed, read)
	case c.managed:
		shown, ok := w.shown(c, read)

		return !ok || shown.Overlaps(changed)
	default:
		return true
	}
}

// reports says whether a change of an XR may change a field of its status.
func (g *graph) reports(changed, read change.Pattern) bool {
	w := g.walk()
	w.source(changed.Overlaps, false)

	return slices.ContainsFunc(w.statuses, read.Overlaps)
}

// shown returns the field of a managed resource that a field of its status shows as it is
// outside: status.atProvider has the names of spec.forProvider. False where the Composition
// says nothing of such a field: then it may follow from any.
func (w *walk) shown(c *composed, read change.Pattern) (change.Pattern, bool) {
	path := read.Segments()
	if !below(path, fieldStatus, "atProvider") || len(path) == 2 {
		return change.Pattern{}, false
	}

	field := append(change.Path{}, path...)
	field[0].Field, field[1].Field = fieldSpec, "forProvider"

	out, err := change.ParsePattern(field.String())
	if err != nil {
		return change.Pattern{}, false
	}

	if v, ok := field.In(c.base); ok {
		if _, isMap := v.(map[string]any); !isMap {
			return out, true
		}
	}

	return out, slices.ContainsFunc(w.flows, func(f flow) bool { return f.to.resource == c && f.to.path.Covers(field) })
}

// groupKind is the kind of a composed resource.
func (c *composed) groupKind() schema.GroupKind { return c.kind.gvk().GroupKind() }
