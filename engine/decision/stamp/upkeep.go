// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Upkeep returns the annotations of a parent that its progress changes: it
// was ready for the first time, or allowances have served. Nil when there are
// none. A managed resource's External allowances are its gate's business. See
// [AnnotatedByStatus] for how to write them.
func Upkeep(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}

	list, err := allowance.Parse(u)
	if err == nil && len(list) > 0 {
		if left := allowance.Unserved(u, list); len(left) < len(list) {
			out[v1alpha1.AnnotationAllowances] = allowance.FormatList(left)
		}
	}

	if text := initialized(u, len(out) > 0); text != "" {
		out[v1alpha1.AnnotationInitialized] = text
	}

	if len(out) == 0 {
		return nil
	}

	return out
}

// initialized is the record of an object that has been ready, where it is to be written: of an XR once the composition
// function reports that it has settled, and again with allowances that have served, for Crossplane may take away what the
// function reports; and that an XR is built up, where the webhook was not asked when it referred to something first.
func initialized(u *unstructured.Unstructured, served bool) string {
	rec, known := resource.InitializedOf(u)
	first := !known || rec.Building
	progress, reports := resource.ProgressOf(u)

	switch {
	case !known && reports && progress.Phase == v1alpha1.PhaseInitializing:
		return resource.FormatInitialized(v1alpha1.Initialized{Building: true})
	case !first && (!served || rec.Settled == progress.Settled):
		return ""
	case reports && progress.Settled.Generation == 0, !reports && !resource.WasReady(u):
		return ""
	default:
		return resource.FormatInitialized(v1alpha1.Initialized{Settled: progress.Settled})
	}
}
