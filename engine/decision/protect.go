// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// protect replaces New by a copy that carries the old object's kausality.io/*
// annotations, and remembers what the writer asks for instead.
func (d *decider) protect() {
	if d.New == nil {
		return
	}

	d.asked = d.New
	d.New = &unstructured.Unstructured{Object: d.New.Object}
	own(d.New)

	if d.User.Name == d.Settings.Manager && d.User.Name != "" {
		tidy(d.New)

		return
	}

	annotations := resource.Map(d.New.Object, "metadata", "annotations")

	var was map[string]any
	if d.Old != nil {
		was = resource.Map(d.Old.Object, "metadata", "annotations")
	}

	for key, value := range annotations {
		if !ours(key) || change.Equal(was[key], value) || d.mayWrite(key) {
			continue
		}

		delete(annotations, key)
	}

	for key, value := range was {
		if _, written := annotations[key]; ours(key) && !written && !d.mayDrop(key) {
			annotations[key] = value
		}
	}

	if d.composing {
		delete(annotations, v1alpha1.AnnotationRelease) // What is composed again is not released.
	}

	tidy(d.New)
}

// ours says whether only Kausality writes an annotation.
func ours(key string) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) }

// mayWrite says whether the writer's value of an annotation counts: the
// composition function tells, through Crossplane, what the Composition asked
// for.
func (d *decider) mayWrite(key string) bool {
	switch key {
	case v1alpha1.AnnotationManagementPolicies:
		return d.User.Name == d.Settings.Crossplane && resource.IsManaged(d.New)
	case v1alpha1.AnnotationWish:
		return d.applies()
	case v1alpha1.AnnotationMode:
		return d.applies() && resource.IsManaged(d.New)
	case v1alpha1.AnnotationRelease:
		return d.mayRelease() && resource.Annotation(d.New, key) == v1alpha1.ReleaseOrphan
	default:
		return false
	}
}

// own gives an object maps of its own, down to its annotations, which there are
// then; everything else it goes on sharing.
func own(u *unstructured.Unstructured) {
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

// tidy takes the empty map of annotations away.
func tidy(u *unstructured.Unstructured) {
	if meta := resource.Map(u.Object, "metadata"); len(resource.Map(meta, "annotations")) == 0 {
		delete(meta, "annotations")
	}
}

// annotate sets one annotation of an object that owns them; the empty value
// removes it.
func annotate(u *unstructured.Unstructured, key, value string) {
	meta := resource.Map(u.Object, "metadata")
	annotations := resource.Map(meta, "annotations")

	switch {
	case value == "":
		delete(annotations, key)
		tidy(u)
	case annotations == nil:
		meta["annotations"] = map[string]any{key: value}
	default:
		annotations[key] = value
	}
}
