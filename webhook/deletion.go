// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// FieldManager is the field manager of what the webhook writes itself.
const FieldManager = "kausality-webhook"

// recordTries is how often a grant is written before the deletion is refused:
// each time somebody else was faster.
const recordTries = 5

// delete answers a deletion. What it gives is written into the object before it
// goes: admission cannot change what it deletes.
func (j *Judge) delete(ctx context.Context, req admission.Request, ask *decision.Request, d decision.Decision) admission.Response {
	if why, denied := d.Denied(); denied {
		j.tell(req, ask, &d)

		return refused(why, &d)
	}

	if req.DryRun == nil || !*req.DryRun {
		switch err := j.recordDeletion(ctx, ask, d); {
		case err == nil:
		case decision.GoesUnrecorded(ask):
			return j.unrecorded(req, ask, &d, err)
		default:
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("cannot record who asked to delete %s %q: %w",
				ask.Old.GetKind(), ask.Old.GetName(), err))
		}
	}

	rsp := admission.Allowed("").WithWarnings(clip(d.Warnings)...)
	rsp.AuditAnnotations = audit(&d)

	return rsp
}

// recordDeletion writes what a deletion gives. It has the API server look again
// at what it deletes, and then there is nothing left to write.
func (j *Judge) recordDeletion(ctx context.Context, ask *decision.Request, d decision.Decision) error {
	for range recordTries {
		if d.Object == nil {
			return nil
		}

		changed := stamps(ask.Old, d.Object)
		if len(changed) == 0 {
			return nil
		}

		err := j.annotate(ctx, ask.Old, changed)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}

		if !apierrors.IsConflict(err) {
			return err
		}

		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(ask.Old.GroupVersionKind())

		if err := j.Live.Get(ctx, client.ObjectKeyFromObject(ask.Old), live); err != nil {
			return client.IgnoreNotFound(err)
		}

		if live.GetUID() != ask.Old.GetUID() {
			return nil
		}

		ask.Old = live
		d = decision.Decide(*ask)
	}

	return errBusy
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

	if decision.AnnotatedByStatus(u) {
		return j.Writer.Status().Patch(ctx, target, patch, client.FieldOwner(FieldManager)) //nolint:wrapcheck // The caller says what.
	}

	return j.Writer.Patch(ctx, target, patch, client.FieldOwner(FieldManager)) //nolint:wrapcheck // The caller says what.
}

// stamps are our annotations that are to be written to get from one object to
// the other; nil takes one away.
func stamps(from, to *unstructured.Unstructured) map[string]any {
	out := map[string]any{}

	for _, key := range []string{
		v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace, v1alpha1.AnnotationLastUpgrade, v1alpha1.AnnotationHeld,
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
