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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// MutatePath is where governed objects are sent.
const MutatePath = "/mutate"

// Mutator stamps and holds changes of governed objects.
type Mutator struct {
	// Cache reads policies, windows and namespaces.
	Cache client.Reader
	// Live reads parents, which must not be stale.
	Live client.Reader
	// Events are recorded on what is held.
	Events events.EventRecorder
	// Settings of the installation.
	Settings decision.Settings
	// Compiled policies.
	Compiled *policy.Cache
	// Log of decisions.
	Log logr.Logger
	// Now is the clock.
	Now func() time.Time
}

// Handle answers one admission request.
func (m *Mutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	// 1. Read the objects.
	ask, err := m.request(ctx, req)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}

	// 2. Decide.
	d := decision.Decide(*ask)

	// 3. Say so.
	m.record(req, ask, &d)

	if why, denied := d.Denied(); denied {
		return admission.Denied(why).WithWarnings(clip(d.Warnings)...)
	}

	// 4. Answer with what changes; what is deleted cannot be.
	if ask.New == nil {
		return admission.Allowed("").WithWarnings(clip(d.Warnings)...)
	}

	raw, err := json.Marshal(d.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("cannot encode %s %q: %w", req.Kind.Kind, req.Name, err))
	}

	return admission.PatchResponseFromRaw(req.Object.Raw, raw).WithWarnings(clip(d.Warnings)...)
}

// request gathers what the engine needs.
func (m *Mutator) request(ctx context.Context, req admission.Request) (*decision.Request, error) {
	out := &decision.Request{
		Operation: decision.Operation(req.Operation),
		User:      policy.User{Name: req.UserInfo.Username, Groups: req.UserInfo.Groups},
		Settings:  m.Settings,
		Now:       m.Now(),
	}

	var err error
	if out.Old, err = decode(req.OldObject.Raw); err != nil {
		return nil, err
	}

	if out.New, err = decode(req.Object.Raw); err != nil {
		return nil, err
	}

	if ref, ok := resource.ParentIn(out.Old, out.New); ok {
		if out.Parent, err = m.parent(ctx, ref); err != nil {
			return nil, err
		}
	}

	if out.Namespace, err = m.namespace(ctx, req.Namespace); err != nil {
		return nil, err
	}

	list := &v1alpha1.AllowancePolicyList{}
	if err := m.Cache.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list policies: %w", err)
	}

	var bad []error
	if out.Policies, bad = m.Compiled.Set(list.Items); len(bad) > 0 {
		m.Log.V(1).Info("Some policies are not used", "errors", fmt.Sprint(bad))
	}

	windows := &v1alpha1.UpgradeAllowanceList{}
	if err := m.Cache.List(ctx, windows); err != nil {
		return nil, fmt.Errorf("cannot list upgrade allowances: %w", err)
	}

	out.Upgrades = windows.Items

	return out, nil
}

// record logs the decision, and tells of what is held.
func (m *Mutator) record(req admission.Request, ask *decision.Request, d *decision.Decision) {
	allowed, unallowed := 0, 0

	for _, f := range d.Findings {
		switch f.Verdict {
		case decision.Allowed:
			allowed++
		case decision.Unallowed:
			unallowed++
		case decision.Ungoverned:
		}
	}

	log := m.Log.WithValues("kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name,
		"operation", req.Operation, "user", req.UserInfo.Username, "uid", req.UID)
	log.V(1).Info("Decided", "allowed", allowed, "unallowed", unallowed, "action", d.Action, "forged", d.Forged)

	for _, p := range d.Problems {
		log.Info("Ignored an input", "problem", p.Error())
	}

	if req.DryRun != nil && *req.DryRun || d.Object == nil || len(d.Held) == 0 ||
		ask.Old != nil && resource.Annotation(ask.Old, v1alpha1.AnnotationHeld) == resource.Annotation(d.Object, v1alpha1.AnnotationHeld) {
		return
	}

	for _, h := range d.Held {
		text := fmt.Sprintf("%s %s: %s: %s", req.Kind.Kind, req.Name, decision.Describe(h), h.Reason)
		log.Info("Held a change", "field", h.Field, "reason", h.Reason)

		for _, u := range []*unstructured.Unstructured{ask.Old, ask.Parent} {
			if u != nil {
				m.Events.Eventf(u, nil, corev1.EventTypeWarning, "KausalityHeld", "Hold", "%s", cut(text))
			}
		}
	}
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // No object is no error.
	}

	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("cannot read the object: %w", err)
	}

	return u, nil
}

// Limits of warnings. The API server cuts a warning header at 256 characters
// once all of them exceed 4096 (k8s.io/apiserver/pkg/endpoints/filters).
const (
	maxWarnings     = 8
	maxWarningBytes = 480
)

func clip(warnings []string) []string {
	out := make([]string, 0, min(len(warnings), maxWarnings))

	for i, w := range warnings {
		if i == maxWarnings-1 && len(warnings) > maxWarnings {
			return append(out, fmt.Sprintf("and %d more like these", len(warnings)-i))
		}

		out = append(out, cut(w))
	}

	return out
}

func cut(s string) string {
	if len(s) <= maxWarningBytes {
		return s
	}

	return s[:maxWarningBytes] + "..."
}

var _ admission.Handler = &Mutator{}
