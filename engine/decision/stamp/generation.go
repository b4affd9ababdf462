// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// PredictGeneration is the generation that the API server will give the new
// object: a mutating webhook runs before it is bumped.
func PredictGeneration(o request.Objects, changes, back []change.Change) int64 {
	if o.Old == nil {
		return 1
	}

	generation := resource.Generation(o.Old)

	for _, c := range changes {
		if (!c.Metadata() || bumpsGeneration(o.Old)) && !rule.TakenBack(back, c) { // Our annotations are changes too.
			return generation + 1
		}
	}

	return max(generation, 1)
}

// RequestNumber is which request within its generation a change of the object is: 0
// where it makes the generation. A deletion needs no number, for there is one.
func RequestNumber(o request.Objects, earlier input.Earlier, generation int64) int64 {
	if o.Operation != request.OperationUpdate {
		return 0
	}

	if len(earlier.Approved) > 0 && resource.ObservedGeneration(o.Old) > 0 {
		return 0 // What follows is what the generation asks for, which is there already.
	}

	if was := resource.Generation(o.Old); was > 0 && generation > was {
		return 0
	}

	return allowance.LastRequest(o.Old, generation) + 1
}

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

// AnnotatedByStatus reports whether annotations are to be written through the status
// subresource, where they are nobody's new wish: the API server counts a change
// of annotations as a new generation otherwise.
func AnnotatedByStatus(u *unstructured.Unstructured) bool { return bumpsGeneration(u) }

// bumpsGeneration reports whether the API server counts a change of annotations
// as a new generation.
//
// Source: k8s.io/kubernetes pkg/registry/apps/deployment/strategy.go,
// PrepareForUpdate of the strategy and of the one for its status.
func bumpsGeneration(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apps", Kind: "Deployment"}
}
