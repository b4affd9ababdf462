// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// actionDecide is what events say we did.
const actionDecide = "Decide"

// report counts and logs a decision, and reports what is held.
func (j *Judge) report(req admission.Request, ask *request.Request, d *decision.Decision) {
	outcome := d.Outcome()
	f, _ := d.Lead()

	j.Metrics.decided(cached.ObjectOf(ask).GroupVersionKind(), ask.Operation, d)

	log := j.log(req, ask)
	for _, p := range d.Problems {
		log.Info("Ignored an input", "problem", p.Error())
	}

	j.Metrics.unevaluated(d.Problems)

	for _, f := range d.Shadow {
		log.Info("Would be decided otherwise without Shadow mode", "field", f.Finding.Change.Field, "verdict", f.Finding.Verdict, "would",
			decision.ShadowText(f),
			"policy", f.By.Policy, "condition", f.By.Condition, "policies", texts(f.Finding.Policies()))
	}

	if len(d.Overruled) > 0 {
		log.V(1).Info("Overruled what only Kausality writes", "keys", d.Overruled)
	}

	if outcome == decision.OutcomeUnchanged || outcome == decision.OutcomeUngoverned {
		log = log.V(1)
	}

	if log.Enabled() {
		sayDecided(log, outcome, f, d)
	}

	if outcome == decision.OutcomeHeld && newlyHeld(ask, d) {
		j.held(req, ask, d)
	}
}

// sayDecided logs a decision for people, and why.
func sayDecided(log logr.Logger, outcome decision.Outcome, f finding.Finding, d *decision.Decision) {
	log.Info("Decided", "decision", outcome, "field", f.Change.Field, "rule", f.Rule, "policy", f.Policy,
		"initiator", f.Initiator(), "trace", path(f.Trace()), "missing", f.Missing(), "changes", len(d.Findings),
		"policies", texts(d.Policies()), "enforcements", texts(d.Governing()), "attestations", d.Attestations, "causes", reasons(d))
}

// log says what a line is about.
func (j *Judge) log(req admission.Request, ask *request.Request) logr.Logger {
	return j.Log.WithValues("group", req.Kind.Group, "kind", cached.ObjectOf(ask).GetKind(), "namespace", req.Namespace,
		"name", resource.Name(cached.ObjectOf(ask)), "operation", req.Operation, "subResource", req.SubResource,
		"user", req.UserInfo.Username, "dryRun", req.DryRun != nil && *req.DryRun, "uid", req.UID)
}

// newlyHeld reports whether what is held is not what was held before.
func newlyHeld(ask *request.Request, d *decision.Decision) bool {
	return ask.Old == nil || d.Object == nil ||
		resource.Annotation(ask.Old, v1alpha1.AnnotationHeld) != resource.Annotation(d.Object, v1alpha1.AnnotationHeld)
}

// held reports the changes that are held, all at once: of several events about an
// object of which only the text differs the API server gets the first.
func (j *Judge) held(req admission.Request, ask *request.Request, d *decision.Decision) {
	if list := d.HeldNow(); len(list) > 0 {
		j.event(req, ask, string(v1alpha1.EventReasonHeld), list[0].Field, d.DescribeHeld)
	}
}

// recordRefusal records an event of a request that is refused, and passes it on to [Judge.Refusals].
func (j *Judge) recordRefusal(req admission.Request, ask *request.Request, d *decision.Decision) {
	if j.Refusals != nil {
		j.Refusals.Refused(ask, d)
	}

	first := ""
	if causes := d.Causes(); len(causes) > 0 {
		first = causes[0].Field
	}

	object := fmt.Sprintf("%s %q: ", cached.ObjectOf(ask).GetKind(), resource.Name(cached.ObjectOf(ask)))
	why := strings.TrimPrefix(d.Answer().Reason, object) // It is said before.

	j.event(req, ask, string(v1alpha1.EventReasonDenied), first, func(room int) string {
		return message.Cut(fmt.Sprintf("refused to %s: %s", req.UserInfo.Username, why), room)
	})
}

// conflict counts and logs that a request must be made again.
func (j *Judge) conflict(req admission.Request, ask *request.Request, d *decision.Decision) {
	j.Metrics.conflicted(cached.ObjectOf(ask).GroupVersionKind())
	j.log(req, ask).Info("Asked to try again", "why", d.Conflict)
}

// event records an event on the object held up, and on its parent, where people
// look. What it is about has the first field that is concerned: recorders take
// events that differ in their text alone for the same.
func (j *Judge) event(req admission.Request, ask *request.Request, reason, field string, within func(room int) string) {
	if req.DryRun != nil && *req.DryRun {
		return
	}

	head := message.Cut(fmt.Sprintf("%s %s: ", cached.ObjectOf(ask).GetKind(), resource.Name(cached.ObjectOf(ask))), message.Most/2) //nolint:mnd // Half.
	note := head + within(message.Most-utf8.RuneCountInString(head))
	object, parent := reference(cached.ObjectOf(ask), field), reference(ask.Parent, "")

	if ask.Old != nil {
		j.record(reference(ask.Old, field), parent, reason, note)
	}

	j.record(parent, object, reason, note)
}

// record records an event on an object that is there.
func (j *Judge) record(regarding, related *corev1.ObjectReference, reason, note string) {
	switch {
	case regarding == nil || regarding.UID == "":
	case related == nil || related.Name == "":
		j.Events.Eventf(regarding, nil, corev1.EventTypeWarning, reason, actionDecide, "%s", note)
	default:
		j.Events.Eventf(regarding, related, corev1.EventTypeWarning, reason, actionDecide, "%s", note)
	}
}

// reference refers to a field of an object, or to all of it; nil for none.
func reference(u *unstructured.Unstructured, field string) *corev1.ObjectReference {
	if u == nil {
		return nil
	}

	return &corev1.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), FieldPath: field,
	}
}

// reasons say why each field is not allowed.
func reasons(d *decision.Decision) []string {
	causes := d.Causes()
	out := make([]string, len(causes))

	for i, c := range causes {
		out[i] = c.Message
		if c.Field != "" {
			out[i] = c.Field + ": " + c.Message
		}
	}

	return out
}
