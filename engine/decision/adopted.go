// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// adopted says whether the object was there before the composite resource or
// claim that it is a part of: that did not build it up, and what it wants of it is
// a change like any other.
func (d *decider) adopted() bool {
	return d.Old != nil && (resource.IsComposite(d.Parent) || resource.IsClaim(d.Parent)) && Adopted(d.Old, d.Parent)
}

// Adopted says whether an object was there before what it is a part of now.
func Adopted(u, parent *unstructured.Unstructured) bool {
	made := born(u)

	return !made.IsZero() && made.Before(born(parent))
}

// born is when an object was made; zero where it does not say.
func born(u *unstructured.Unstructured) time.Time {
	t, _ := time.Parse(time.RFC3339, resource.String(u.Object, "metadata", "creationTimestamp"))

	return t
}
