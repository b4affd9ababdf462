// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// FieldManager is the field manager of what the webhook writes itself.
const FieldManager = "kausality-webhook"

// recordTries is how often a grant is written before the deletion is refused:
// each time somebody else was faster.
const recordTries = 5

// delete answers a deletion. What it gives is written into the object before it
// goes: admission cannot change what it deletes.
func (j *Judge) delete(ctx context.Context, req admission.Request, ask *request.Request, d decision.Decision) admission.Response {
	if answer := d.Answer(); answer.Refuses() {
		j.recordRefusal(req, ask, &d)

		return refused(answer.Reason, ask, &d)
	}

	if req.DryRun == nil || !*req.DryRun {
		switch err := j.recordDeletion(ctx, ask, d); {
		case err == nil:
		case errors.Is(err, errOutdated):
			return outdated(ask, err)
		case request.PassesUnrecorded(ask):
			return j.unrecorded(req, ask, &d, err)
		default:
			return j.failed(ctx, req, ask, fmt.Errorf("cannot record who asked to delete %s %q: %w",
				ask.Old.GetKind(), ask.Old.GetName(), j.Objects.Explain(ctx, ask.Old.GroupVersionKind().GroupKind(), asGoverned, err)))
		}
	}

	rsp := admission.Allowed("").WithWarnings(clip(d.Warnings)...)
	rsp.AuditAnnotations = audit(&d)

	return rsp
}

// errOutdated is the cause when what is to be deleted is not, or no longer, what
// is there.
var errOutdated = errors.New("it is not the object that is there now: try again")

// outdated has a deletion asked for once more, by what is there.
func outdated(ask *request.Request, err error) admission.Response {
	rsp := admission.Denied(fmt.Sprintf("cannot delete %s %q: %v", ask.Old.GetKind(), ask.Old.GetName(), err))
	rsp.Result.Code, rsp.Result.Reason = http.StatusConflict, metav1.StatusReasonConflict

	return rsp
}

// recordDeletion writes what a deletion gives. It has the API server check again
// at what it deletes, and then there is nothing left to write. What is written
// follows from the object that is there, and from nothing that the review says
// of it: who reaches our port may send one of their own making.
func (j *Judge) recordDeletion(ctx context.Context, ask *request.Request, d decision.Decision) error {
	if d.Object == nil || len(stamps(ask.Old, d.Object)) == 0 {
		return nil
	}

	for range recordTries {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(ask.Old.GroupVersionKind())

		if err := j.Live.Get(ctx, client.ObjectKeyFromObject(ask.Old), live); err != nil {
			return client.IgnoreNotFound(err)
		}

		if live.GetUID() != ask.Old.GetUID() {
			return errOutdated
		}

		changed, err := j.given(ctx, ask, live)
		if err != nil || len(changed) == 0 {
			return err
		}

		if err := j.annotate(ctx, live, changed); !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}

	return errBusy
}

// given are the annotations that the deletion of a live object gives it.
func (j *Judge) given(ctx context.Context, ask *request.Request, live *unstructured.Unstructured) (map[string]any, error) {
	now := *ask
	now.Old, now.Parent, now.Namespace = live, nil, nil // Those of what is there are read.

	d, err := j.look(ctx, entryPoint{}, &now)
	if err != nil {
		return nil, err
	}

	if d.Answer().Refuses() {
		return nil, errOutdated // It was let pass by what the review says.
	}

	if d.Object == nil {
		return map[string]any{}, nil
	}

	return stamps(live, d.Object), nil
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

func asGoverned(gr schema.GroupResource) right.Need {
	return right.Governed(right.Kind{Group: gr.Group, Resource: gr.Resource})
}
