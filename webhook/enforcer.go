// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// EnforcePath is where what Enforcements govern is sent, as it would be stored.
const EnforcePath = "/enforce"

// Enforcer refuses what is not allowed, by what would be stored in the end.
type Enforcer struct {
	Judge  *Judge
	Scaler *Scaler
}

// Handle answers one admission request.
func (e *Enforcer) Handle(ctx context.Context, req admission.Request) (rsp admission.Response) {
	defer e.Judge.Metrics.took("enforce", time.Now())

	var ask *request.Request

	defer func() {
		if r := recover(); r != nil {
			rsp = e.Judge.recovered(ctx, req, ask, r)
		}
	}()

	// 1. Gather what there is to decide by.
	ask, err := e.Judge.request(ctx, req)
	if err != nil {
		return e.Judge.unread(ctx, req, ask, err)
	}

	if req.SubResource != "" {
		return e.scale(ctx, req, ask)
	}

	if ask.Old == nil && ask.New == nil {
		return admission.Errored(http.StatusBadRequest, errNotObject)
	}

	// 2. Decide.
	d, err := e.Judge.by(ctx, entryPoint{part: decisionlog.PartEnforce, stored: true}, req, ask)
	if err != nil {
		return e.Judge.failed(ctx, req, ask, err)
	}

	// 3. Answer. What passes the mutator has reported.
	answer := d.Answer()

	switch {
	case answer.Do == decision.Retry:
		e.Judge.conflict(req, ask, &d)

		return again(&d)
	case answer.Do == decision.Deny:
		e.Judge.recordRefusal(req, ask, &d)

		return refused(answer.Reason, ask, &d)
	case req.Operation == admissionv1.Delete:
		return e.Judge.delete(ctx, req, ask, d).WithWarnings()
	default:
		return admission.Allowed("")
	}
}

// refused answers that a request is not let through, and why of each field.
func refused(why string, ask *request.Request, d *decision.Decision) admission.Response {
	rsp := admission.Denied(why)
	rsp.Result.Details = details(ask, d)
	rsp.AuditAnnotations = audit(d)

	return rsp
}

// again answers that a request is to be made once more, which clients do by
// themselves.
func again(d *decision.Decision) admission.Response {
	rsp := admission.Denied(d.Conflict)
	rsp.Result.Code, rsp.Result.Reason = http.StatusConflict, metav1.StatusReasonConflict
	rsp.AuditAnnotations = audit(d)

	return rsp
}

var _ admission.Handler = &Enforcer{}
