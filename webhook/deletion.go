// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
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

func asGoverned(gr schema.GroupResource) right.Need {
	return right.Governed(right.Kind{Group: gr.Group, Resource: gr.Resource})
}

// unrecorded lets a deletion pass of which nothing could be written down, and
// tells who asks what that means.
func (j *Judge) unrecorded(req admission.Request, ask *request.Request, d *decision.Decision, err error) admission.Response {
	j.log(req, ask).Error(err, "Cannot record who deletes a namespace")

	object := fmt.Sprintf("%s %q", ask.Old.GetKind(), resource.Name(ask.Old))

	rsp := admission.Allowed("").WithWarnings(clip(append(d.Warnings, fmt.Sprintf(
		"%s: cannot record your deletion, and its managed resources remain until someone with permission deletes them: %v",
		object, err)))...)
	rsp.AuditAnnotations = audit(d)

	return rsp
}
