// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// First reports whether the function runs for an XR for the first time: what its Composition desires is what it desired all along.
func First(xr *unstructured.Unstructured) bool {
	_, said := resource.ConditionOf(xr, v1alpha1.ConditionState)
	rec, _ := resource.InitializedOf(xr)

	return !said && rec.Settled.Generation == 0
}

// Recorded returns an XR with a record that it was built up, where it has none and composes what was there before it: it was
// restored from a backup, while the webhook was not asked. The XR is not modified.
func Recorded(xr *unstructured.Unstructured, observed map[string]*unstructured.Unstructured) *unstructured.Unstructured {
	_, known := resource.InitializedOf(xr)
	if _, reports := resource.ProgressOf(xr); known || reports {
		return xr
	}

	older := func(u *unstructured.Unstructured) bool { return request.Older(u, xr) }
	if !slices.ContainsFunc(slices.Collect(maps.Values(observed)), older) {
		return xr
	}

	out := &unstructured.Unstructured{Object: maps.Clone(xr.Object)}
	meta := maps.Clone(resource.Map(xr.Object, "metadata"))

	annotations := map[string]any{}
	maps.Copy(annotations, resource.Map(meta, "annotations"))
	annotations[v1alpha1.AnnotationInitialized] = resource.FormatInitialized(v1alpha1.Initialized{})

	meta["annotations"], out.Object["metadata"] = annotations, meta

	return out
}
