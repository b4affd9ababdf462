// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// adopted says whether the object was there before the composite resource or
// claim that it is a part of, or becomes one now: that did not build it up, and
// what it wants of it is a change like any other.
func (d *decider) adopted() bool {
	if d.Old == nil || !d.composes(d.Parent) {
		return false
	}

	_, had := resource.ParentOf(d.Old)

	return !had || Older(d.Old, d.Parent)
}

// Older says whether an object was there before another one.
func Older(u, than *unstructured.Unstructured) bool {
	object := born(u)

	return !object.IsZero() && object.Before(born(than))
}

// born is when an object was made; zero where it does not say.
func born(u *unstructured.Unstructured) time.Time {
	t, _ := time.Parse(time.RFC3339, resource.String(u.Object, "metadata", "creationTimestamp"))

	return t
}
