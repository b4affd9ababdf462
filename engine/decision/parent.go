// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// adopted reports whether the object was there before the composite resource or
// claim that it is a part of, or becomes one now: that did not build it up, and
// what it wants of it is a change like any other. So it is of a managed resource and whatever owns that.
func adopted(o objects, how manner) bool {
	if o.Old == nil || !composes(o, how, o.Parent) && !resource.IsManaged(o.Old) {
		return false
	}

	_, had := resource.ParentOf(o.Old)

	return !had || Older(o.Old, o.Parent)
}

// Older reports whether an object was there before another one.
func Older(u, than *unstructured.Unstructured) bool {
	object := born(u)

	return !object.IsZero() && object.Before(born(than))
}

// born is when an object was made; zero where it does not say.
func born(u *unstructured.Unstructured) time.Time {
	t, _ := time.Parse(time.RFC3339, resource.String(u.Object, "metadata", "creationTimestamp"))

	return t
}

// parentBuilt reports whether the parent has built up what it is made of. A Claim has where its XR has, which it may not show: it
// is not ready then.
func (o objects) parentBuilt(now time.Time) bool {
	return resource.SeenReady(o.Parent, now) ||
		o.Old != nil && resource.IsClaim(o.Parent) && resource.BoundToClaim(o.Old) && resource.SeenReady(o.Old, now)
}

// buildsUp reports whether the change is of what its parent builds up, be it allowed
// by a policy or not.
func buildsUp(o objects, by writer, how manner, now time.Time) bool {
	return o.Parent != nil && !resource.Deleting(o.Parent) && !o.parentBuilt(now) && by.User.Machine() && !adopted(o, how)
}

// ordinaryPart reports whether the object is what an XR composes, and no gate stands
// before.
func (o objects) ordinaryPart() bool {
	return o.Parent != nil && resource.IsComposite(o.Parent) && !resource.IsManaged(o.New)
}

// openForAnother reports whether a person deletes a managed resource whose gate is
// open because somebody else asked to delete it.
func openForAnother(o objects, by writer) bool {
	if o.Operation != OperationDelete || by.User.Machine() || !resource.IsManaged(o.Old) || resource.Deleting(o.Old) {
		return false
	}

	rec, err := allowance.ParseGate(o.Old)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen && slices.Contains(rec.Actions, gate.ActionDelete) &&
		slices.ContainsFunc(rec.Allowances, allowance.OfDeletion)
}
