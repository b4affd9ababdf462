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
// what it wants of it is a change like any other.
func (f *facts) adopted() bool {
	if f.Old == nil || !f.composes(f.Parent) {
		return false
	}

	_, had := resource.ParentOf(f.Old)

	return !had || Older(f.Old, f.Parent)
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

// buildsUp reports whether the change is of what its parent builds up, be it allowed
// by a policy or not.
func (f *facts) buildsUp() bool {
	return f.Parent != nil && !resource.Deleting(f.Parent) && !resource.SeenReady(f.Parent) && f.User.Machine() && !f.adopted()
}

// ordinaryPart reports whether the object is what an XR composes, and no gate stands
// before.
func (f *facts) ordinaryPart() bool {
	return f.Parent != nil && resource.IsComposite(f.Parent) && !resource.IsManaged(f.New)
}

// openForAnother reports whether a person deletes a managed resource whose gate is
// open because somebody else asked to delete it.
func (f *facts) openForAnother() bool {
	if f.Operation != OperationDelete || f.User.Machine() || !resource.IsManaged(f.Old) || resource.Deleting(f.Old) {
		return false
	}

	rec, err := allowance.ParseGate(f.Old)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen && slices.Contains(rec.Actions, gate.ActionDelete) &&
		slices.ContainsFunc(rec.Allowances, allowance.OfDeletion)
}
