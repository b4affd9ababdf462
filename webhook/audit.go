// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// Keys of audit annotations; the API server puts the webhook's name before
// them.
const (
	// auditDecision sums it up: Unchanged, Allowed, Ungoverned, Denied, Held, Warned
	// or Audited.
	auditDecision = "decision"
	// auditRule is why the change that says most is allowed, such as Allowance or
	// Initiate; absent where it is not.
	auditRule = "rule"
	// auditInitiator is who started the chain that allowed it.
	auditInitiator = "initiator"
	// auditPolicy is the policy or UpgradeAllowance that allowed it, or
	// ENFORCEMENT/EXCEPTION.
	auditPolicy = "policy"
	// auditTrace is the path from the initiator's change to the parent's, as
	// KIND/NAME@GENERATION FIELD, one after the other.
	auditTrace = "trace"
	// auditMissing is what it would take to allow the first change that is not
	// allowed.
	auditMissing = "missing"
	// auditFields are the fields that say most: all that are not allowed, or else
	// all that are.
	auditFields = "fields"
	// auditPolicies are the policies, windows and exceptions by which these were
	// decided, as NAME@GENERATION: that allowed them, or that would.
	auditPolicies = "policies"
	// auditEnforcements are the Enforcements that govern the object, as
	// NAME@GENERATION.
	auditEnforcements = "enforcements"
	// auditAttestations are the values that policies captured, from the objects on the
	// path and from this one, as a JSON object by field path; (masked) stands for a
	// credential.
	auditAttestations = "attestations"
	// auditShadow says of each change what would be decided otherwise if what is in
	// Shadow mode were enforced, and by which policy, or which condition of it.
	auditShadow = "shadow"
)

// maxAuditRunes is the most characters of an audit annotation.
const maxAuditRunes = 1024

// audit is what the API server's audit log gets of a decision.
func audit(d *decision.Decision) map[string]string {
	out := map[string]string{auditDecision: string(d.Outcome())}

	if len(d.Shadow) > 0 {
		out[auditShadow] = message.Join(shadows(d), maxAuditRunes)
	}

	f, ok := d.Lead()
	if !ok {
		return out
	}

	for key, value := range map[string]string{
		auditRule: string(f.Rule), auditPolicy: f.Policy, auditInitiator: f.Initiator(),
		auditTrace: path(f.Trace()), auditMissing: f.Missing(), auditFields: message.Join(d.Fields(), maxAuditRunes),
		auditPolicies: message.Join(texts(d.Policies()), maxAuditRunes), auditEnforcements: message.Join(texts(d.Governing()), maxAuditRunes),
		auditAttestations: attested(d.Attestations),
	} {
		if value != "" {
			out[key] = message.Cut(value, maxAuditRunes)
		}
	}

	return out
}

// shadows say what would be decided otherwise without Shadow mode.
func shadows(d *decision.Decision) []string {
	out := make([]string, len(d.Shadow))
	for i, f := range d.Shadow {
		out[i] = decision.ShadowText(f)
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

// texts are policies and the like as NAME@GENERATION.
func texts(list []finding.Source) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}

	return out
}

// attested writes captured values as a JSON object, the first by path that fit;
// empty for none.
func attested(values map[string]string) string {
	out := ""
	some := map[string]string{}

	for _, key := range slices.Sorted(maps.Keys(values)) {
		some[key] = values[key]

		raw, err := json.Marshal(some)
		if err != nil || len(raw) > maxAuditRunes {
			return out
		}

		out = string(raw)
	}

	return out
}

// details are what clients can read of a refusal: the object, and why each field
// of it is refused.
func details(ask *request.Request, d *decision.Decision) *metav1.StatusDetails {
	u := cached.ObjectOf(ask)
	out := &metav1.StatusDetails{
		Name: resource.Name(u), Group: ask.Resource.Group, Kind: ask.Resource.Resource, UID: u.GetUID(),
	}

	for _, c := range d.Causes() {
		out.Causes = append(out.Causes, metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: c.Field, Message: c.Message})
	}

	return out
}
