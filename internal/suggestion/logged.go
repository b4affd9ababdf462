// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Log gathers what decision logs show of XRs, and of what Crossplane wanted of what they
// compose and was not allowed. Of objects it keeps which fields change, and the newest of each
// XR; of values nothing.
type Log struct {
	edits  edits
	wishes []wished
}

// wished is a change of a composed resource that was not allowed, in one decision.
type wished struct {
	Observed

	time time.Time
	xr   xrKey
	// generation of the XR, and settled true where all that follows from it had been made.
	generation int64
	settled    bool
	// before is true where it was held before, by what is reported.
	before bool
	// copied is true where Crossplane copies it from the Claim.
	copied bool
	// object is what changes, and value is what it is to be, to be compared with others of
	// the same field only.
	object, value string
}

// Add adds a decision of a log, at LOG:LINE. Those of one log are added in its order.
func (l *Log) Add(at string, d *decisionlog.Decision) {
	if d.DryRun {
		return
	}

	if d.By.Part != decisionlog.PartFunction {
		l.edits.add(d)
	}

	parent := objectOf(d.Parent)
	if parent == nil || !resource.IsComposite(parent) && !resource.IsClaim(parent) || !byCrossplane(d) {
		return
	}

	if d.By.Part == decisionlog.PartFunction {
		l.edits.see(parent, d.Time)
	}

	for i := range d.Outcome.Findings {
		if f := &d.Outcome.Findings[i]; f.Verdict == finding.Unallowed {
			l.wishes = append(l.wishes, wishOf(at, d, parent, f.Field))
		}
	}
}

// byCrossplane reports whether a decision is about what Crossplane wants, before it is decided
// once more as it would be stored.
func byCrossplane(d *decisionlog.Decision) bool {
	return d.By.Part == decisionlog.PartFunction || d.By.Part == decisionlog.PartMutate && d.User.Name == d.Settings.Crossplane
}

func objectOf(o decisionlog.Object) *unstructured.Unstructured {
	if o == nil {
		return nil
	}

	return &unstructured.Unstructured{Object: o}
}

// wishOf is what a decision says of one field.
func wishOf(at string, d *decisionlog.Decision, parent *unstructured.Unstructured, field string) wished {
	obj, old := objectOf(d.New), objectOf(d.Old)
	if obj == nil {
		obj = old
	}

	fields, user := newest(parent)
	progress, settles := resource.ProgressOf(parent)

	out := wished{time: d.Time, xr: keyOf(parent), generation: resource.Generation(parent), object: objectName(d, old, obj)}
	out.settled = settles && progress.Settled.Generation >= out.generation || !settles && resource.ObservedGeneration(parent) >= out.generation
	out.before = heldBefore(d, parent, old, field)
	out.value = valueOf(obj, field)
	out.Observed = Observed{
		Parent: parent.GroupVersionKind().GroupKind(), ParentName: nameOf(parent), ParentFields: fields, User: user,
		Child: obj.GroupVersionKind().GroupKind(), ChildField: field, Composition: composedBy(parent), At: at,
	}

	if out.copied = resource.IsClaim(parent); out.copied {
		out.ParentFields, out.Composition = []string{field}, composedBy(obj)
	}

	return out
}

// objectName tells what changes from all else that the XR composes: by its name, or that of the
// composed resource while it has none.
func objectName(d *decisionlog.Decision, old, obj *unstructured.Unstructured) string {
	switch resourceName := resource.ComposedName(obj); {
	case old != nil:
		return old.GetKind() + " " + old.GetName()
	case d.By.Composite != nil:
		return obj.GetKind() + " of composed resource " + d.By.Composite.Resource
	case resourceName != "":
		return obj.GetKind() + " of composed resource " + resourceName
	default:
		return obj.GetKind() + " " + resource.Name(obj)
	}
}

// heldBefore reports whether it is reported that a change was held, or passed, before a
// decision: then it follows from something before.
func heldBefore(d *decisionlog.Decision, parent, old *unstructured.Unstructured, field string) bool {
	if old != nil {
		held, _ := allowance.ParseHeld(old)
		if slices.ContainsFunc(held, func(h v1alpha1.HeldChange) bool { return h.Field == field }) {
			return true
		}
	}

	held, more, _ := condition.Reported(parent)
	obj := cmp.Or(old, objectOf(d.New))

	return more > 0 || slices.ContainsFunc(held, func(h condition.Held) bool {
		c := h.Change

		return c.Field == field && c.Ref.Kind == obj.GetKind() && (c.Ref.Name == resource.Name(obj) ||
			d.By.Composite != nil && c.ComposedResource == d.By.Composite.Resource)
	})
}

// valueOf is what a field is to be, as JSON.
func valueOf(obj *unstructured.Unstructured, field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := path.In(obj.Object)
	raw, _ := json.Marshal(v) //nolint:errchkjson // It was read from JSON.

	return string(raw)
}

// Observed are the changes that were seen, each once: what is wanted again and again until it
// is let through follows from what was changed when it was wanted first.
func (l *Log) Observed() []Observed {
	type key struct {
		xr            xrKey
		object, field string
	}

	wanted := map[key]string{}

	slices.SortStableFunc(l.wishes, func(a, b wished) int { return a.time.Compare(b.time) })

	var out []Observed

	for _, w := range l.wishes {
		k := key{w.xr, w.object, w.ChildField}

		value, again := wanted[k]
		if wanted[k] = w.value; again && value == w.value {
			continue
		}

		o := w.Observed

		switch fields, user := l.edits.of(generation{w.xr, w.generation}, w.time, w.settled); {
		case w.copied: // Nothing else leads to it.
		case w.before && !again:
			o.ParentFields, o.User = nil, "" // It follows from what was changed before the log begins.
		case len(fields) > 0:
			o.ParentFields, o.User = fields, user
		case w.settled:
			o.ParentFields, o.User = nil, "" // Of nobody's change, as of a new version of the Composition.
		}

		out = append(out, o)
	}

	return out
}

// xrKey is an XR.
type xrKey struct {
	schema.GroupKind

	namespace, name, uid string
}

func keyOf(u *unstructured.Unstructured) xrKey {
	return xrKey{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName(), string(u.GetUID())}
}
