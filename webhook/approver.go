// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

// ApprovePath is where ChangeApprovals are sent when they are made.
const ApprovePath = "/mutate-changeapproval"

// Approver writes into a ChangeApproval who makes it and which changes are meant, and refuses
// it to whom it is not to decide about these.
type Approver struct {
	Reviewer *Reviewer

	// Live reads PendingChanges from the API server.
	Live client.Reader
	// Metrics time it.
	Metrics *Metrics
	// Log of decisions, for people.
	Log logr.Logger
}

// Handle answers one admission request.
func (a *Approver) Handle(ctx context.Context, req admission.Request) admission.Response {
	defer a.Metrics.took("approve", time.Now())

	if req.Operation != admissionv1.Create {
		return admission.Allowed("")
	}

	// 1. Read what it is about. What cannot be read its schema refuses, and what is not signed a
	// policy inside the API server.
	made := &v1alpha1.ChangeApproval{}
	if err := json.Unmarshal(req.Object.Raw, made); err != nil {
		return admission.Allowed("").WithWarnings(clip([]string{fmt.Sprintf("cannot read ChangeApproval %q: %v", req.Name, err)})...)
	}

	made.Namespace = req.Namespace
	within := limited(ctx)

	key := client.ObjectKey{Namespace: req.Namespace, Name: made.Spec.PendingChange}

	pending, err := a.pending(within, key) //nolint:contextcheck // What is within is of the context.
	if err != nil {
		return a.unknown(req, err)
	}

	// 2. Decide.
	asked := approval.Request{Approval: made, Pending: pending, User: approverOf(req.UserInfo)}
	asker := a.Reviewer.asker(within) //nolint:contextcheck // As above.

	decided, err := approval.Admit(asked, asker) //nolint:contextcheck // As above.
	if err != nil {
		return a.unknown(req, err)
	}

	// 3. Answer.
	if decided.Refused != "" {
		a.Log.Info("Refused a ChangeApproval", "namespace", req.Namespace, "pendingChange", made.Spec.PendingChange,
			"user", req.UserInfo.Username, "reason", decided.Refused)

		return admission.Denied(decided.Refused)
	}

	return admission.Patched("", approvalPatch(decided)...).WithWarnings(clip(decided.Warnings)...)
}

// pending reads a PendingChange; nil where there is none, and where the name is none that any
// object can have, of which a client asks nobody.
func (a *Approver) pending(within limit, key client.ObjectKey) (*v1alpha1.PendingChange, error) {
	if key.Name == "" || len(content.IsPathSegmentName(key.Name)) > 0 {
		return nil, nil //nolint:nilnil // As said above.
	}

	ctx, stop := within()
	defer stop()

	out := &v1alpha1.PendingChange{}

	err := a.Live.Get(ctx, key, out)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none, which is no error.
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("cannot get PendingChange %q: the API server has not answered within %s: %w", key.Name, waitFor, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("cannot get PendingChange %q: %w", key.Name, err)
	default:
		return out, nil
	}
}

// unknown refuses what could not be looked at.
func (a *Approver) unknown(req admission.Request, err error) admission.Response {
	a.Log.Error(err, "Refused a ChangeApproval that could not be looked at", "namespace", req.Namespace, "user", req.UserInfo.Username)

	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("it is not known whether this may be decided, try again: %w", err))
}

// approvalPatch is what is stored of a decision. Whatever the request says of the approver
// goes.
func approvalPatch(decided approval.Admission) []jsonpatch.Operation {
	out := []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/approver", decided.Approver)}

	if len(decided.Changes) > 0 {
		out = append(out, jsonpatch.NewOperation("add", "/spec/changes", decided.Changes))
	}

	return out
}

// approverOf is the user of a request, as they are recorded.
func approverOf(u authenticationv1.UserInfo) v1alpha1.Approver {
	out := v1alpha1.Approver{Username: u.Username, UID: u.UID, Groups: u.Groups}

	for key, values := range u.Extra {
		if out.Extra == nil {
			out.Extra = map[string]v1alpha1.ExtraValue{}
		}

		out.Extra[key] = v1alpha1.ExtraValue(values)
	}

	return out
}

var _ admission.Handler = &Approver{}
