// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// MutatePath is where governed objects are sent to be stamped.
const MutatePath = "/mutate"

// Mutator stamps changes of governed objects, holds them, and records who asked
// for a deletion. Whether a change is refused it leaves to the [Enforcer], which
// sees what comes of the object in the end.
type Mutator struct {
	Judge  *Judge
	Scaler *Scaler
}

// Handle answers one admission request.
func (m *Mutator) Handle(ctx context.Context, req admission.Request) (rsp admission.Response) {
	defer m.Judge.Metrics.took("mutate", time.Now())

	var ask *request.Request

	defer func() {
		if r := recover(); r != nil {
			rsp = m.Judge.recovered(ctx, req, ask, r)
		}
	}()

	if req.SubResource == subresourceStatus {
		return m.status(req)
	}

	// 1. Gather what there is to decide by.
	ask, err := m.Judge.request(ctx, req)
	if err != nil {
		return m.Judge.unread(ctx, req, ask, err)
	}

	if req.SubResource != "" {
		return m.scale(ctx, req, ask)
	}

	if ask.Old == nil && ask.New == nil {
		return admission.Errored(http.StatusBadRequest, errNotObject)
	}

	// 2. Decide.
	d, err := m.Judge.by(ctx, entryPoint{part: decisionlog.PartMutate}, req, ask)
	if err != nil {
		return m.Judge.failed(ctx, req, ask, err)
	}

	// 3. Say so.
	m.Judge.report(req, ask, &d)
	m.Judge.Metrics.windows(req, ask, &d)

	// 4. Answer.
	if req.Operation == admissionv1.Delete {
		return m.Judge.delete(ctx, req, ask, d)
	}

	if answer := d.Answer(); answer.Final {
		return refused(answer.Reason, ask, &d)
	}

	patches, err := patch(ask.New, &d)
	if err != nil {
		return m.Judge.failed(ctx, req, ask, err)
	}

	rsp = admission.Patched("", patches...).WithWarnings(clip(warningsOf(&d))...)
	rsp.AuditAnnotations = audit(&d)

	return rsp
}

// warningsOf are what the user is warned, unless the refusal says it.
func warningsOf(d *decision.Decision) []string {
	if d.Answer().Refuses() {
		return nil
	}

	return d.Warnings
}

var _ admission.Handler = &Mutator{}
