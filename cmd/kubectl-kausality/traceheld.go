// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// hold reads what is held: of the object by its annotation and by what its parent's
// condition says of it, and of what is made for it by theirs and by its own condition.
func (d *traceDocument) hold(u *unstructured.Unstructured, near related) error {
	err := d.holdRecorded(u, nil, near.parent)

	for _, child := range near.children {
		ref := refOf(child)
		err = errors.Join(err, d.holdRecorded(child, &ref, u))
	}

	held, more, ok := reported(composite(u, near))
	for _, h := range held {
		d.holdReported(h, u, near)
	}

	d.HeldMore += more

	// What a composition function holds of the object is said by who composes it.
	if near.parent != nil {
		theirs, _, ok := reported(near.parent)
		if !ok {
			d.Message = conditionOf(near.parent)
		}

		for _, h := range theirs {
			if h.Resource == kindName(u) {
				d.holdReported(h, u, near)
			}
		}
	}

	if !ok {
		d.Message = conditionOf(u)
	}

	return err
}

// holdRecorded adds what kausality.io/held of an object says. Crossplane copies a
// Claim's spec to its XR field by field: there the Claim shows who asked.
func (d *traceDocument) holdRecorded(u *unstructured.Unstructured, ref *objectRef, parent *unstructured.Unstructured) error {
	list, err := allowance.ParseHeld(u)
	for _, h := range list {
		if n, more := allowance.MoreHeld(h); more {
			d.HeldMore += n
		} else {
			e := heldEntryOf(h)
			e.Object, e.Stored = ref, storedOf(u, h.Field)

			if e.User == "" && parent != nil && resource.IsClaim(parent) && resource.BoundToClaim(u) {
				e.Asked = storedOf(parent, h.Field)
			}

			d.Held = append(d.Held, e)
		}
	}

	if err != nil && ref != nil {
		err = fmt.Errorf("%s: %w", object(u), err)
	}

	return err
}

// reported is what the function says is held of what an XR composes, and how many more; false where it says that
// something is, and not what. What is held of the XR itself is in its annotation.
func reported(xr *unstructured.Unstructured) (list []condition.Held, more int, ok bool) {
	if c, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality); c.Reason != v1alpha1.ReasonHeld {
		return nil, 0, true
	}

	return condition.Reported(xr)
}

// composite is the XR that a condition is about: the object, or that of a Claim.
func composite(u *unstructured.Unstructured, near related) *unstructured.Unstructured {
	if resource.IsClaim(u) && len(near.children) > 0 {
		return near.children[0]
	}

	return u
}

// holdReported adds what a function reports, unless an annotation said so already.
func (d *traceDocument) holdReported(h condition.Held, u *unstructured.Unstructured, near related) {
	about, ref, composed := u, (*objectRef)(nil), ""

	switch {
	case h.Resource == kindName(u):
	case h.Change.Field == v1alpha1.MutationCreate:
		about, ref, composed = nil, &objectRef{Kind: h.Change.Ref.Kind}, h.Change.ComposedResource
	default:
		ref = &objectRef{Kind: h.Change.Ref.Kind, Name: h.Change.Ref.Name}
		if about = near.find(h.Resource); about != nil {
			*ref = refOf(about)
		}
	}

	if slices.ContainsFunc(d.Held, func(e heldEntry) bool {
		return e.Field == h.Change.Field && e.ComposedResource == composed && sameObject(e.Object, ref)
	}) {
		return
	}

	e := heldEntryOf(h.Change)
	e.Object, e.ComposedResource, e.Passed = ref, composed, h.Passed

	if about != nil {
		e.Stored = storedOf(about, e.Field)
	}

	d.Held = append(d.Held, e)
}

// heldEntryOf is a held change as it is shown.
func heldEntryOf(h v1alpha1.HeldChange) heldEntry {
	return heldEntry{Field: h.Field, From: h.From, To: h.To, User: allowance.Author(h), Reason: h.Missing, Digest: h.Digest, At: h.At}
}

// change is what is held, as messages describe it.
func (e heldEntry) change() v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Field: e.Field, From: e.From, To: e.To}
}

func sameObject(a, b *objectRef) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Kind == b.Kind && a.Name == b.Name
}

// conditionOf is what the function says on an object.
func conditionOf(u *unstructured.Unstructured) string {
	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	return c.Message
}

// kindName names an object as conditions do.
func kindName(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

// store reads what is stored and is not what was allowed: of the object, and of what
// is made for it.
func (d *traceDocument) store(u *unstructured.Unstructured, near related) error {
	err := d.storeIn(u, nil)

	for _, child := range near.children {
		ref := refOf(child)
		if problem := d.storeIn(child, &ref); problem != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", object(child), problem))
		}
	}

	return err
}

// storeIn reads it of one object: what its record of edits says.
func (d *traceDocument) storeIn(u *unstructured.Unstructured, ref *objectRef) error {
	edits, err := allowance.ParseStored(u)

	for _, e := range edits {
		entry := storedEntry{
			Object: ref, Field: e.Field, Allowed: e.From, User: allowance.Author(e), Since: timeOf(allowance.StoredSince(e)),
			Value: valueAt(u, e.Field), Manager: managerOf(u, e.Field), Approvals: e.Stored.Approvals,
		}

		if e.Masked {
			entry.Value, entry.Allowed = mask.Text, mask.Text
		}

		d.Stored = append(d.Stored, entry)
	}

	return err
}

// valueAt is the value of a field as it is shown.
func valueAt(u *unstructured.Unstructured, field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return ""
	}

	v, _ := path.In(u.Object) // What is not there is nothing.

	return change.Text(mask.Value(path, v, u.Object), maxShown)
}

// maxShown is the most bytes of a value that trace shows.
const maxShown = 128

// storedOf is who stored what a field has, by managedFields; nil where they do
// not, or where it is Crossplane that passes it on.
func storedOf(u *unstructured.Unstructured, field string) *storedBy {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return nil
	}

	w, ok := managedfields.WriterOf(u, path)
	if !ok || strings.HasPrefix(w.Manager, passedOn) {
		return nil
	}

	return &storedBy{Manager: w.Manager, Time: timeOf(w.Time)}
}

// passedOn begins the field managers under which Crossplane writes to XRs and to what
// they compose.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/controller/apiextensions.
const passedOn = "apiextensions.crossplane.io/"

func managerOf(u *unstructured.Unstructured, field string) string {
	if by := storedOf(u, field); by != nil {
		return by.Manager
	}

	return ""
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}

	return &metav1.Time{Time: t.UTC()}
}
