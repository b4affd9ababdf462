// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// heldInside is what a managed resource's gate did not let out, and what its pipeline
// wishes all the same: there is no change to hold any more, and the external object
// is still as it was. What this run changes anyhow, or holds, is left out.
func (r *Request) heldInside(wished *unstructured.Unstructured, findings []decision.Finding) []Held {
	if r.Mode == v1alpha1.ModeAudit {
		return nil
	}

	list, err := gate.InsideOf(r.Observed)
	if err != nil || len(list) == 0 {
		return nil // An error is reported with the decision.
	}

	var out []Held

	asks := decision.Request{
		Operation: decision.OperationUpdate, Old: r.Observed, New: r.Observed, User: r.User, Parent: r.XR,
		Basis: r.Basis,
	}
	moves := change.Between(r.Observed.Object, wished.Object)

	for _, in := range list {
		if slices.ContainsFunc(moves, func(c change.Change) bool { return overlap(c.Path, in.Change.Path) }) ||
			slices.ContainsFunc(findings, func(f decision.Finding) bool { return overlap(f.Change.Path, in.Change.Path) }) {
			continue
		}

		reason := "it " + decision.StoredBy(in.User, in.Since) + ", and the gate did not let it out: " + decision.RemedyForStored(asks, in.Change)
		h := r.heldAsIs(decision.HeldBetween(in.Change, reason, r.Observed.Object, wished.Object))
		h.Inside, h.Entry.Cause = true, &v1alpha1.Cause{Type: v1alpha1.CauseDrift, User: in.User}

		out = append(out, h)
	}

	return out
}

// overlap reports whether one of two paths leads to the other.
func overlap(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}

// putBack puts back what the gate did not let out, where that is to be done.
func (r *Request) putBack() (Result, bool) {
	back, paths := r.backToAsked()
	if back == nil {
		return Result{}, false
	}

	out := back.compared()
	list, _ := gate.InsideOf(r.Observed)

	for i := range out.Held {
		h := &out.Held[i]
		h.Back = !h.Inside && slices.ContainsFunc(list, func(in gate.Inside) bool {
			return in.Change.Field == h.Field && slices.ContainsFunc(paths, func(path change.Path) bool { return overlap(path, in.Change.Path) })
		})
	}

	return out, true
}

// backToAsked is the request as it is once what the gate did not let out is put back, as far as the
// pipeline wishes it and nothing allows it: Crossplane stored it without this function, or after what
// allowed it was gone. From then on it is held as any other change, and can be approved. Nil where there
// is nothing to put back. What something allows stays, be it for the managed resource alone: to put
// that back and to let it through again would have no end. In mode Fatal nothing is held: what is
// stored passes, as before.
func (r *Request) backToAsked() (*Request, []change.Path) {
	if r.Mode != v1alpha1.ModeHold {
		return nil, nil
	}

	list, err := gate.InsideOf(r.Observed)
	if err != nil || len(list) == 0 {
		return nil, nil // An error is reported with the decision.
	}

	rec, _ := gate.ParseAsked(r.Observed)
	asked, first := gate.AskedFor(r.Observed, rec)
	record, second := wish.Parse(r.Observed)
	fields, third := managedfields.Of(r.Observed, managedfields.ManagerOf(r.XR))

	if errors.Join(first, second, third) != nil {
		return nil, nil
	}

	_, merged, _ := r.merged(fields)
	moves := change.Between(r.Observed.Object, merged.Object)
	d := decision.Decide(r.asking(decision.OperationUpdate, asked, r.Observed))
	observed := r.Observed.DeepCopy()

	var paths []change.Path

	for _, path := range gate.Away(rec) {
		stays := !slices.ContainsFunc(moves, func(c change.Change) bool { return overlap(c.Path, path) })
		if !stays || !unallowed(d.Findings, path) || !r.byCrossplaneAlone(list, path) || r.inVain(list, path) {
			continue
		}

		next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(observed.Object)}
		if !back(next, asked, r.Desired.Object, path) {
			continue
		}

		record.ForgetPart(r.Desired.Object, path)

		if !r.heldAgain(next, record, fields, list, path) {
			continue
		}

		observed, paths = next, append(paths, path)
	}

	if len(paths) == 0 {
		return nil, nil
	}

	out := *r
	out.Observed = observed
	if record != nil {
		out.record(observed, record)
	}

	return &out, paths
}

// unallowed reports whether a field changes, and nothing of that is allowed.
func unallowed(findings []decision.Finding, path change.Path) bool {
	found := false

	for _, f := range findings {
		if overlap(f.Change.Path, path) {
			if f.Verdict != decision.Unallowed {
				return false
			}

			found = true
		}
	}

	return found
}

// back gives a field of an observed object that a pipeline wishes the value that was asked for; false
// where the pipeline does not.
func back(observed, asked *unstructured.Unstructured, wished map[string]any, path change.Path) bool {
	names, ok := path.Fields()
	if _, wishes := resource.Value(wished, names...); !ok || !wishes {
		return false
	}

	if v, ok := resource.Value(asked.Object, names...); ok {
		// Of another version of the API it may be of another type.
		if stored, is := resource.Value(observed.Object, names...); is && !sameShape(v, stored) {
			return false
		}

		return unstructured.SetNestedField(observed.Object, runtime.DeepCopyJSONValue(v), names...) == nil
	}

	unstructured.RemoveNestedField(observed.Object, names...)

	return true
}

// sameShape reports whether two values are both maps, both lists, or neither.
func sameShape(a, b any) bool {
	_, map1 := a.(map[string]any)
	_, map2 := b.(map[string]any)
	_, list1 := a.([]any)
	_, list2 := b.([]any)

	return map1 == map2 && list1 == list2
}

// byCrossplaneAlone reports whether Crossplane stored all of a field that is not as it was asked for.
func (r *Request) byCrossplaneAlone(list []gate.Inside, path change.Path) bool {
	return !slices.ContainsFunc(list, func(in gate.Inside) bool { return overlap(in.Change.Path, path) && in.User != r.User.Name })
}

// maxBack is in how many runs on end a field is put back. After that the API server does not take its old
// value, as one that may only grow; and while that is tried it takes nothing else of the resource either.
const maxBack = 5

// inVain reports whether a field was put back that often.
func (r *Request) inVain(list []gate.Inside, path change.Path) bool {
	was, known := resource.StateOf(r.XR)

	return known && slices.ContainsFunc(list, func(in gate.Inside) bool {
		return overlap(in.Change.Path, path) && was.Back[backKey(r.Name, in.Change.Field)] >= maxBack
	})
}

// heldAgain reports whether all that was stored of a field is a change again once that is put back.
func (r *Request) heldAgain(
	observed *unstructured.Unstructured, record *wish.Record, fields managedfields.Fields, list []gate.Inside, path change.Path,
) bool {
	out := *r
	if out.Observed = observed; record != nil {
		out.record(observed, record)
	}

	_, merged, _ := out.merged(fields)
	again := change.Between(observed.Object, merged.Object)

	return !slices.ContainsFunc(list, func(in gate.Inside) bool {
		return overlap(in.Change.Path, path) && !slices.ContainsFunc(again, in.Change.Same)
	})
}
