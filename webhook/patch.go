// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
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

// stamps are our annotations that are to be written to get from one object to
// the other; nil takes one away.
func stamps(from, to *unstructured.Unstructured) map[string]any {
	out := map[string]any{}

	for _, key := range []string{
		v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace, v1alpha1.AnnotationRecord, v1alpha1.AnnotationLastUpgrade,
		v1alpha1.AnnotationHeld,
	} {
		was, is := resource.Annotation(from, key), resource.Annotation(to, key)

		switch {
		case was == is:
		case is == "":
			out[key] = nil
		default:
			out[key] = is
		}
	}

	return out
}

// annotate writes annotations to the version of an object that they were
// decided for.
func (j *Judge) annotate(ctx context.Context, u *unstructured.Unstructured, annotations map[string]any) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": u.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}

	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(u.GroupVersionKind())
	target.SetNamespace(u.GetNamespace())
	target.SetName(u.GetName())

	patch := client.RawPatch(types.MergePatchType, raw)

	if stamp.AnnotatedByStatus(u) {
		return j.Writer.Status().Patch(ctx, target, patch, client.FieldOwner(FieldManager))
	}

	return j.Writer.Patch(ctx, target, patch, client.FieldOwner(FieldManager))
}
