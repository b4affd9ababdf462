// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Keys of audit annotations; the API server puts the webhook's name before
// them.
const (
	auditDecision  = "decision"
	auditRule      = "rule"
	auditInitiator = "initiator"
	auditPolicy    = "policy"
	auditTrace     = "trace"
	auditMissing   = "missing"
)

// maxAuditRunes is the most characters of an audit annotation.
const maxAuditRunes = 1024

// maxEventRunes is the most characters of an event's note.
//
// Source: k8s.io/kubernetes pkg/apis/core/validation/events.go.
const maxEventRunes = 1000

// actionDecide is what events say we did.
const actionDecide = "Decide"

// audit is what the API server's audit log gets of a decision.
func audit(d *decision.Decision) map[string]string {
	out := map[string]string{auditDecision: string(d.Outcome())}

	f, ok := d.Lead()
	if !ok {
		return out
	}

	for key, value := range map[string]string{
		auditRule: string(f.Rule), auditPolicy: f.Policy, auditInitiator: f.Initiator(),
		auditTrace: path(f.Trace()), auditMissing: f.Missing(),
	} {
		if value != "" {
			out[key] = cut(value, maxAuditRunes)
		}
	}

	return out
}

// path writes a trace in one line.
func path(trace []v1alpha1.Hop) string {
	hops := make([]string, len(trace))
	for i, h := range trace {
		hops[i] = fmt.Sprintf("%s/%s@%d %s", h.Kind, h.Name, h.Generation, h.Field)
	}

	return strings.Join(hops, " > ")
}

// report counts and logs a decision, and tells of what is held up.
func (j *Judge) report(req admission.Request, ask *decision.Request, d *decision.Decision) {
	outcome := d.Outcome()
	f, _ := d.Lead()

	j.Metrics.decided(subject(ask).GroupVersionKind(), ask.Operation, d)

	log := j.log(req, ask)
	for _, p := range d.Problems {
		log.Info("Ignored an input", "problem", p.Error())
	}

	if len(d.Overruled) > 0 {
		log.V(1).Info("Overruled what only Kausality writes", "keys", d.Overruled)
	}

	if outcome == decision.OutcomeUnchanged || outcome == decision.OutcomeUngoverned {
		log = log.V(1)
	}

	log.Info("Decided", "decision", outcome, "field", f.Change.Field, "rule", f.Rule, "policy", f.Policy,
		"initiator", f.Initiator(), "trace", path(f.Trace()), "missing", f.Missing(),
		"changes", len(d.Findings), "enforcements", d.Enforcements)

	if outcome == decision.OutcomeHeld && newlyHeld(ask, d) {
		j.held(req, ask, d)
	}
}

// log says what a line is about.
func (j *Judge) log(req admission.Request, ask *decision.Request) logr.Logger {
	return j.Log.WithValues("group", req.Kind.Group, "kind", subject(ask).GetKind(), "namespace", req.Namespace,
		"name", resource.Name(subject(ask)), "operation", req.Operation, "subResource", req.SubResource,
		"user", req.UserInfo.Username, "dryRun", req.DryRun != nil && *req.DryRun, "uid", req.UID)
}

// newlyHeld says whether what is held is not what was held before.
func newlyHeld(ask *decision.Request, d *decision.Decision) bool {
	return ask.Old == nil || d.Object == nil ||
		resource.Annotation(ask.Old, v1alpha1.AnnotationHeld) != resource.Annotation(d.Object, v1alpha1.AnnotationHeld)
}

// held tells of each change that is held.
func (j *Judge) held(req admission.Request, ask *decision.Request, d *decision.Decision) {
	for _, h := range d.Held {
		if _, more := allowance.MoreHeld(h); more {
			continue // Those were told of when they were held first.
		}

		j.event(req, ask, "KausalityHeld", fmt.Sprintf("%s: %s", decision.Describe(h), h.Reason))
	}
}

// tell logs that a request is refused, and records an event of it.
func (j *Judge) tell(req admission.Request, ask *decision.Request, d *decision.Decision) {
	why, _ := d.Denied()
	j.event(req, ask, "KausalityDenied", fmt.Sprintf("refused to %s: %s", req.UserInfo.Username, why))
}

// conflict counts and logs that a request must be made again.
func (j *Judge) conflict(req admission.Request, ask *decision.Request, d *decision.Decision) {
	j.Metrics.conflicted(subject(ask).GroupVersionKind())
	j.log(req, ask).Info("Asked to try again", "why", d.Conflict)
}

// event records an event on the object held up, and on its parent, where people
// look.
func (j *Judge) event(req admission.Request, ask *decision.Request, reason, note string) {
	if req.DryRun != nil && *req.DryRun {
		return
	}

	note = cut(fmt.Sprintf("%s %s: %s", subject(ask).GetKind(), resource.Name(subject(ask)), note), maxEventRunes)

	for _, u := range []*unstructured.Unstructured{ask.Old, ask.Parent} {
		if u != nil && u.GetUID() != "" {
			j.Events.Eventf(u, nil, corev1.EventTypeWarning, reason, actionDecide, "%s", note)
		}
	}
}
