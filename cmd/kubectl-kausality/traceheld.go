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
	"github.com/kausality-io/kausality-crossplane/engine/composition"
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

	held, more, ok := reported(u)

	// What a condition does not list may be what the XR's annotation did.
	more += len(held) - recorded(composite(u, near))

	for _, h := range held {
		if about, added := d.holdReported(h, u, near); added || about != composite(u, near) {
			more--
		}
	}

	d.HeldMore += max(0, more)

	// What a composition function holds of the object is said by who composes it.
	if near.parent != nil {
		theirs, _, ok := composition.HeldIn(conditionOf(near.parent))
		if !ok && strings.Contains(conditionOf(near.parent), kindName(u)) {
			d.Message = conditionOf(near.parent)
		}

		for _, h := range theirs {
			if _, some := allowance.MoreHeld(h.Change); !some && h.Resource == kindName(u) {
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

// reported is what the object's own condition says is held, and how many more; false
// where that cannot be read in parts. What an annotation has no room for is counted
// with that.
func reported(u *unstructured.Unstructured) (list []composition.Held, more int, ok bool) {
	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	if c.Reason != v1alpha1.ReasonHeld {
		return nil, 0, true
	}

	list, more, ok = composition.HeldIn(c.Message)

	return slices.DeleteFunc(list, func(h composition.Held) bool {
		_, some := allowance.MoreHeld(h.Change)

		return some
	}), more, ok
}

// composite is the XR that a condition is about: the object, or that of a Claim.
func composite(u *unstructured.Unstructured, near related) *unstructured.Unstructured {
	if resource.IsClaim(u) && len(near.children) > 0 {
		return near.children[0]
	}

	return u
}

// recorded is how many changes kausality.io/held of an object lists.
func recorded(u *unstructured.Unstructured) int {
	list, _ := allowance.ParseHeld(u) // It was parsed before.

	return len(slices.DeleteFunc(list, func(h v1alpha1.HeldChange) bool {
		_, some := allowance.MoreHeld(h)

		return some
	}))
}

// holdReported adds what a condition says, unless an annotation said so already, and
// returns what it is about; nil where that is not there.
func (d *traceDocument) holdReported(h composition.Held, u *unstructured.Unstructured, near related) (*unstructured.Unstructured, bool) {
	about, ref := u, (*objectRef)(nil)
	composed := ""

	if h.Resource != kindName(u) {
		if about = near.find(h.Resource); about != nil {
			r := refOf(about)
			ref = &r
		} else {
			kind, name, _ := strings.Cut(h.Resource, " ")
			if rest, ok := strings.CutPrefix(name, "of composed resource "); ok {
				name, composed = "", rest
			}

			ref = &objectRef{Kind: kind, Name: name}
		}
	}

	if slices.ContainsFunc(d.Held, func(e heldEntry) bool {
		return e.Field == h.Change.Field && e.ComposedResource == composed && sameObject(e.Object, ref)
	}) {
		return about, false
	}

	e := heldEntryOf(h.Change)
	e.Object, e.ComposedResource, e.Passed = ref, composed, h.Passed

	if about != nil {
		e.Stored = storedOf(about, e.Field)
	}

	d.Held = append(d.Held, e)

	return about, true
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
