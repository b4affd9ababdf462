// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestPoliciesAndModeHaveTwoWriters though they are in one annotation: Crossplane's account may tell what a Composition asks
// for, and what it applies of a pipeline alone tells the function's mode.
func TestPoliciesAndModeHaveTwoWriters(t *testing.T) {
	const (
		all, allAudit = `{"v":1,"policies":["*"]}`, `{"v":1,"policies":["*"],"mode":"Audit"}`
		less          = `{"v":1,"policies":["Observe","Create","Update","Delete"]}`
		lessAudit     = `{"v":1,"policies":["Observe","Create","Update","Delete"],"mode":"Audit"}`
		applies       = managedfields.ComposedManager + "0"
	)

	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "XApp",
		"metadata": map[string]any{"name": "app", "uid": "xr-uid", "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
	}}

	for name, tc := range map[string]struct {
		reason        string
		user, manager string
		was, is, want string
	}{
		"Applied":        {"What a pipeline asks for counts whole.", crossplaneUser, applies, all, lessAudit, lessAudit},
		"AppliedHold":    {"In mode Hold too.", crossplaneUser, applies, allAudit, less, less},
		"Held":           {"Where no longer to ask for Delete is held the mode is the new one.", crossplaneUser, applies, allAudit, `{"v":1,"policies":["Observe"]}`, all},
		"Otherwise":      {"Another write of Crossplane tells no mode.", crossplaneUser, "kubectl", all, lessAudit, less},
		"OtherwiseAudit": {"Nor that it is over.", crossplaneUser, "kubectl", allAudit, less, lessAudit},
		"Same":           {"What is as it was stays.", crossplaneUser, "kubectl", allAudit, allAudit, allAudit},
		"Dropped":        {"What is left out does too.", crossplaneUser, applies, allAudit, "", allAudit},
		"Person":         {"Nobody else writes any of it.", "anna", "kubectl", all, lessAudit, all},
		"PersonApplies":  {"By whatever manager.", "anna", applies, allAudit, all, allAudit},
	} {
		t.Run(name, func(t *testing.T) {
			asking := func(text string) map[string]string {
				out := gatedInstance(true, 1).GetAnnotations()
				delete(out, v1alpha1.AnnotationDesiredPolicies)

				if text != "" {
					out[v1alpha1.AnnotationDesiredPolicies] = text
				}

				return out
			}

			req := request.Request{
				Operation: request.OperationUpdate, Old: gatedInstance(true, 1, "Observe"), New: gatedInstance(true, 1, "Observe"),
				User: policy.User{Name: tc.user}, FieldManager: tc.manager,
				Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}}, Action: v1alpha1.ActionHold, Parent: xr,
			}
			req.Old.SetAnnotations(asking(tc.was))
			req.New.SetAnnotations(asking(tc.is))

			d := decision.Decide(req)
			if got := resource.Annotation(d.Object, v1alpha1.AnnotationDesiredPolicies); got != tc.want {
				t.Errorf("%s\n%s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
