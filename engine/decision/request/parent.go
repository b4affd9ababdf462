// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Adopted reports whether the object was there before the composite resource or
// claim that it is a part of, or becomes one now: that did not build it up, and
// what it wants of it is a change like any other. A managed resource and its owner are such a pair, too.
func Adopted(o Objects, how Manner) bool {
	if o.Old == nil || !Composes(o, how, o.Parent) && !resource.IsManaged(o.Old) {
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

// BuildsUp reports whether the change is of what its parent builds up, be it allowed
// by a policy or not.
func BuildsUp(o Objects, by Writer, how Manner, now time.Time) bool {
	return o.Parent != nil && !resource.Deleting(o.Parent) && !o.ParentBuilt(now) && by.User.Machine() && !Adopted(o, how)
}

// Behind reports whether a request's parent is older than the one that its writer
// saw: a composition function stamps what it applies with a trace through the
// parent's generation. What an older parent allows may have been asked for by
// somebody else.
func Behind(req *Request) bool {
	if req.New == nil || req.Parent == nil {
		return false
	}

	text := resource.Annotation(req.New, v1alpha1.AnnotationTrace)
	if text == "" || req.Old != nil && text == resource.Annotation(req.Old, v1alpha1.AnnotationTrace) {
		return false
	}

	entries, err := allowance.ParseTrace(req.New)
	if err != nil {
		return false // Made up, and not recorded.
	}

	return slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool {
		return slices.ContainsFunc(e.Trace, func(h v1alpha1.Hop) bool {
			return h.Kind == req.Parent.GetKind() && h.Name == resource.Name(req.Parent) && after(h, req.Parent)
		})
	})
}

// after reports whether a hop through an object is of a change that the object does
// not show yet.
func after(h v1alpha1.Hop, u *unstructured.Unstructured) bool {
	generation := resource.Generation(u)

	return h.Generation > max(generation, 1) ||
		h.Generation >= generation && h.Request > allowance.LastRequest(u, h.Generation)
}
