// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A proposal is what may be stored of the new object of a request: with the
// annotations that only Kausality writes as they were, a gate as it was moved, and what
// holds objects together in its place.
type proposal struct {
	// object may be stored; nil on delete. Its maps are not shared, down to its
	// annotations.
	object *unstructured.Unstructured
	// Kept are fields that were put back, and overruled those of which the writer's
	// value is not what is stored; warnings are for the user.
	Kept, Overruled, Warnings []string
}

// propose makes the proposal of a request.
func propose(o request.Objects, by request.Writer, how request.Manner, gates bool, policies *policy.Set) proposal {
	if o.New == nil {
		return proposal{}
	}

	out := proposal{object: &unstructured.Unstructured{Object: o.New.Object}}
	CloneMetadata(out.object)

	restoreAnnotations(o, by, how.Composing, out.object)
	restoreGate(o, by, &out)

	if how.Caller != request.Validate {
		restoreLinks(o, by, gates, policies, &out)
	}

	return out
}

// announcement reads whether Crossplane applies a managed resource, and whether it
// announces its deletion.
func announcement(o request.Objects, by request.Writer) (composing, announced bool) {
	if o.Operation != request.OperationUpdate || !by.IsCrossplane() || !resource.IsManaged(o.Old) {
		return false, false
	}

	list, err := allowance.Parse(o.New)

	return true, err == nil && slices.ContainsFunc(list, allowance.OfDeletion)
}

// restoreAnnotations gives the object the old one's kausality.io/* annotations.
func restoreAnnotations(o request.Objects, by request.Writer, composing bool, object *unstructured.Unstructured) {
	defer dropEmptyAnnotations(object)

	if by.IsManager() && by.User.Name != "" {
		return
	}

	annotations := resource.Map(object.Object, "metadata", "annotations")

	var was map[string]any
	if o.Old != nil {
		was = resource.Map(o.Old.Object, "metadata", "annotations")
	}

	for key, value := range annotations {
		if !Ours(key) || change.Equal(was[key], value) || mayWrite(o, by, key) {
			continue
		}

		delete(annotations, key)
	}

	if !by.Applies() {
		restoreMode(o, object)
	}

	for key, value := range was {
		if _, written := annotations[key]; Ours(key) && !written && !mayDrop(o, by, key) {
			annotations[key] = value
		}
	}

	if composing && !o.IsLeaving() {
		delete(annotations, v1alpha1.AnnotationRelease) // What is composed again is not released.
	}
}

// restoreMode gives the object the function's mode that the old one says: what a pipeline asks for is applied with it alone.
func restoreMode(o request.Objects, object *unstructured.Unstructured) {
	is, err := management.ParseDesired(object)
	audited := o.Old != nil && management.Audited(o.Old)

	if err != nil || is.V == 0 || audited == (is.Mode == v1alpha1.ModeAudit) {
		return
	}

	if is.Mode = ""; audited {
		is.Mode = v1alpha1.ModeAudit
	}

	Annotate(object, v1alpha1.AnnotationDesiredPolicies, management.FormatDesired(is))
}

// Ours reports whether only Kausality writes an annotation.
func Ours(key string) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) }

// mayWrite reports whether the writer's value of an annotation counts: the
// composition function reports, through Crossplane, what the Composition asked
// for.
func mayWrite(o request.Objects, by request.Writer, key string) bool {
	switch key {
	case v1alpha1.AnnotationDesiredPolicies:
		return by.IsCrossplane() && resource.IsManaged(o.New)
	case v1alpha1.AnnotationWish:
		return by.Applies()
	case v1alpha1.AnnotationRelease:
		return MayRelease(o, by) && resource.Annotation(o.New, key) == v1alpha1.ReleaseOrphan
	default:
		return false
	}
}

// CloneMetadata gives an object separate maps, down to its annotations, which there are
// then; everything else stays shared.
func CloneMetadata(u *unstructured.Unstructured) {
	object := maps.Clone(u.Object)
	if object == nil {
		object = map[string]any{}
	}

	meta := maps.Clone(resource.Map(object, "metadata"))
	if meta == nil {
		meta = map[string]any{}
	}

	annotations := make(map[string]any, len(resource.Map(meta, "annotations"))+2)
	maps.Copy(annotations, resource.Map(meta, "annotations"))

	meta["annotations"] = annotations
	object["metadata"] = meta
	u.Object = object
}

// WithOwnMetadata returns the same object with separate metadata and annotations; everything else stays shared.
func WithOwnMetadata(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: u.Object}
	CloneMetadata(out)

	if _, ok := resource.Value(u.Object, "metadata", "annotations"); !ok {
		dropEmptyAnnotations(out)
	}

	return out
}

// dropEmptyAnnotations takes the empty map of annotations away.
func dropEmptyAnnotations(u *unstructured.Unstructured) {
	if meta := resource.Map(u.Object, "metadata"); len(resource.Map(meta, "annotations")) == 0 {
		delete(meta, "annotations")
	}
}

// Annotate sets one annotation of an object that does not share them; the empty value
// removes it.
func Annotate(u *unstructured.Unstructured, key, value string) {
	meta := resource.Map(u.Object, "metadata")
	annotations := resource.Map(meta, "annotations")

	switch {
	case value == "":
		delete(annotations, key)
		dropEmptyAnnotations(u)
	case annotations == nil:
		meta["annotations"] = map[string]any{key: value}
	default:
		annotations[key] = value
	}
}

// mayDrop reports whether an annotation of ours that the writer leaves out is to
// go: a person takes a release back, or a record that is not understood, and a function
// that is taken out of a pipeline records no wishes any more.
func mayDrop(o request.Objects, by request.Writer, key string) bool {
	switch {
	case key == v1alpha1.AnnotationWish && by.Applies():
		return true
	case by.User.Machine() || by.User.Name == "":
		return false
	default:
		return key == v1alpha1.AnnotationRelease || !request.Understood(o.Old, key)
	}
}
