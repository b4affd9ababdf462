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

// backToAsked is the request as it is once what the gate did not let out is put back, as far as the
// pipeline wishes it and nothing allows it: Crossplane stored it without this function, or after what
// allowed it was gone. From then on it is held as any other change, and can be approved. Nil where there
// is nothing to put back. What something allows stays, be it for the managed resource alone: to put
// that back and to let it through again would have no end. In mode Fatal nothing is held: what is
// stored passes, as before.
func (r *Request) backToAsked() *Request {
	if r.Mode != v1alpha1.ModeHold {
		return nil
	}

	list, err := gate.InsideOf(r.Observed)
	if err != nil || len(list) == 0 {
		return nil // An error is reported with the decision.
	}

	rec, _ := gate.ParseAsked(r.Observed)
	asked, first := gate.AskedFor(r.Observed, rec)
	record, second := wish.Parse(r.Observed)
	fields, third := managedfields.Of(r.Observed, managedfields.ManagerOf(r.XR))

	if errors.Join(first, second, third) != nil {
		return nil
	}

	_, merged, _ := r.merged(fields)
	moves := change.Between(r.Observed.Object, merged.Object)
	d := decision.Decide(r.asking(decision.OperationUpdate, asked, r.Observed))
	observed, found := r.Observed.DeepCopy(), false

	for _, path := range gate.Away(rec) {
		stays := !slices.ContainsFunc(moves, func(c change.Change) bool { return overlap(c.Path, path) })
		if stays && unallowed(d.Findings, path) && back(observed, asked, r.Desired.Object, path) {
			found = true
			record.ForgetPart(r.Desired.Object, path)
		}
	}

	if !found {
		return nil
	}

	out := *r
	out.Observed = observed
	if record != nil {
		out.record(observed, record)
	}

	return &out
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
		return unstructured.SetNestedField(observed.Object, runtime.DeepCopyJSONValue(v), names...) == nil
	}

	unstructured.RemoveNestedField(observed.Object, names...)

	return true
}
