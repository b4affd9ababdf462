// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// patch is the JSON patch from what was asked for to what is decided. Mostly
// only annotations differ, of an XR its finalizers, and of a new managed resource its management
// policies, and comparing whole objects costs more than deciding about them.
func patch(asked *unstructured.Unstructured, d *decision.Decision) ([]jsonpatch.Operation, error) {
	if len(d.Held)+len(d.Kept) == 0 {
		return slices.Concat(
			annotationPatch(asked, d.Object), finalizerPatch(asked, d.Object), gatePatch(asked, d.Object), ownersPatch(asked, d.Object),
		), nil
	}

	raw, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s %q: %w", asked.GetKind(), resource.Name(asked), err)
	}

	decided, err := json.Marshal(d.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s %q: %w", asked.GetKind(), resource.Name(asked), err)
	}

	patches, err := jsonpatch.CreatePatch(raw, decided)
	if err != nil {
		return nil, fmt.Errorf("cannot compare %s %q with what was decided: %w", asked.GetKind(), resource.Name(asked), err)
	}

	return patches, nil
}

func annotationPatch(asked, decided *unstructured.Unstructured) []jsonpatch.Operation {
	was, is := resource.Map(asked.Object, "metadata", "annotations"), resource.Map(decided.Object, "metadata", "annotations")

	switch {
	case change.Equal(was, is):
		return nil
	case len(is) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", "/metadata/annotations", nil)}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", is)}
	}
}

func finalizerPatch(asked, decided *unstructured.Unstructured) []jsonpatch.Operation {
	was, is := resource.List(asked.Object, "metadata", "finalizers"), resource.List(decided.Object, "metadata", "finalizers")
	if len(was) == len(is) {
		return nil
	}

	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/finalizers", is)}
}

// gatePatch sets the management policies that a managed resource is stored with.
func gatePatch(asked, decided *unstructured.Unstructured) []jsonpatch.Operation {
	was, is := resource.List(asked.Object, "spec", "managementPolicies"), resource.List(decided.Object, "spec", "managementPolicies")
	if change.Equal(was, is) {
		return nil
	}

	return []jsonpatch.Operation{jsonpatch.NewOperation("replace", "/spec/managementPolicies", is)}
}

// ownersPatch sets who owns what, where that is to stay.
func ownersPatch(asked, decided *unstructured.Unstructured) []jsonpatch.Operation {
	was, is := resource.List(asked.Object, "metadata", "managedFields"), resource.List(decided.Object, "metadata", "managedFields")
	same := len(was) == len(is) && (len(is) == 0 || &was[0] == &is[0]) // Mostly nobody changes them, and they are long.

	if same || change.Equal(was, is) {
		return nil
	}

	return []jsonpatch.Operation{jsonpatch.NewOperation("replace", "/metadata/managedFields", is)}
}
