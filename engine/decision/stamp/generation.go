// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
