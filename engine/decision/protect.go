// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// protect replaces New by a copy that carries the old object's kausality.io/*
// annotations. Controllers copy annotations from one object to another without
// meaning anything by it, so their writes are put right silently; a person who
// writes a value of their own is told.
func (d *decider) protect() {
	if d.New == nil {
		return
	}

	d.New = d.New.DeepCopy()

	if d.User.Name == d.Settings.Manager && d.User.Name != "" {
		return
	}

	was, asked := ourAnnotations(d.Old), ourAnnotations(d.New)
	annotations := d.New.GetAnnotations()

	for key, value := range asked {
		if was[key] == value || d.mayWrite(key) {
			continue
		}

		if _, had := was[key]; !had {
			delete(annotations, key)
		}

		if d.forged(key, value) {
			d.decision.Forged = append(d.decision.Forged, key)
		}
	}

	for key, value := range was {
		if _, ok := asked[key]; ok && d.mayWrite(key) {
			continue
		}

		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[key] = value
	}

	slices.Sort(d.decision.Forged)
	setAnnotations(d.New, annotations)
}

// mayWrite says whether the writer's value of an annotation counts: the
// composition function tells, through Crossplane, what the Composition asked
// for.
func (d *decider) mayWrite(key string) bool {
	return key == v1alpha1.AnnotationManagementPolicies && d.User.Name == d.Settings.Crossplane && resource.IsManaged(d.New)
}

// forged says whether a new value of our annotation was made up by a person,
// and not carried along from the parent.
func (d *decider) forged(key, value string) bool {
	if d.Operation != OperationUpdate || d.User.Machine() || value == "" {
		return false
	}

	return d.Parent == nil || resource.Annotation(d.Parent, key) != value
}

func ourAnnotations(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	if u == nil {
		return out
	}

	for k, v := range u.GetAnnotations() {
		if strings.HasPrefix(k, v1alpha1.AnnotationPrefix) {
			out[k] = v
		}
	}

	return out
}

// setAnnotations sets an object's annotations, and takes the empty map away.
func setAnnotations(u *unstructured.Unstructured, annotations map[string]string) {
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")

		return
	}

	u.SetAnnotations(annotations)
}
