// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

const crossplanesUser = "system:serviceaccount:crossplane-system:crossplane"

// withRepair has an object record a repair of its image, or its creation anew, of now.
func withRepair(t *testing.T, u *unstructured.Unstructured, key string, r v1alpha1.Repairs) *unstructured.Unstructured {
	t.Helper()

	out := u.DeepCopy()

	text, err := wish.WithRepairs(resource.Annotation(u, v1alpha1.AnnotationWish), u, map[string]v1alpha1.Repairs{key: r})
	if err != nil {
		t.Fatal(err)
	}

	out.SetAnnotations(map[string]string{v1alpha1.AnnotationWish: text, v1alpha1.AnnotationTrace: resource.Annotation(u, v1alpha1.AnnotationTrace)})

	return out
}

// TestTheWebhookLetsThroughWhatTheFunctionRepairs and nothing else over an edit by hand.
func TestTheWebhookLetsThroughWhatTheFunctionRepairs(t *testing.T) {
	image, err := fieldpath.Parse("spec.template.spec.containers[0].image")
	if err != nil {
		t.Fatal(err)
	}

	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "XApp",
		"metadata": map[string]any{"name": "app", "uid": "xr-uid", "generation": int64(3), "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
	}}
	manager := managedfields.ManagerOf(xr)
	old, obj := wishedDeployment(t, "by-hand", "kubectl"), wishedDeployment(t, "web-2", manager)
	key, _ := (*wish.Finder)(nil).KeyOf(old.Object, obj.Object, change.Change{Path: image, To: "web-2"})
	first, second := v1alpha1.Repairs{Count: 1, First: 100, Last: 100}, v1alpha1.Repairs{Count: 2, First: 100, Last: 200}

	annotations := old.GetAnnotations()
	annotations[v1alpha1.AnnotationTrace] = "- {field: create, generation: 1, initiator: anna, trace: [{kind: XApp, name: app, generation: 1, field: create}, {kind: Deployment, name: d, generation: 1, field: create}]}"
	old.SetAnnotations(annotations)

	for name, test := range map[string]struct {
		old, obj *unstructured.Unstructured
		user     string
		allowed  bool
	}{
		"Repair":             {old, withRepair(t, obj, key, first), crossplanesUser, true},
		"Second repair":      {withRepair(t, old, key, first), withRepair(t, obj, key, second), crossplanesUser, true},
		"No repair":          {old, obj, crossplanesUser, false},
		"Of before":          {withRepair(t, old, key, first), withRepair(t, obj, key, first), crossplanesUser, false},
		"Of something else":  {old, withRepair(t, obj, "1234", first), crossplanesUser, false},
		"By somebody else":   {old, withRepair(t, obj, key, first), "hans", false},
		"Of what is created": {old, withRepair(t, obj, wish.KeyOfCreation, first), crossplanesUser, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := decision.Decide(request.Request{
				Basis: request.Basis{
					Settings: request.Settings{Crossplane: crossplanesUser}, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				},
				Operation: request.OperationUpdate, Old: test.old, New: test.obj, Parent: xr, ParentSettles: true, Action: v1alpha1.ActionHold,
				User: policy.User{Name: test.user}, FieldManager: manager,
			})
			if d.Allowed() != test.allowed {
				t.Fatalf("findings: %+v", d.Findings)
			}

			if !test.allowed {
				return
			}

			if d.Findings[0].Rule != finding.RuleRepair || resource.Annotation(d.Object, v1alpha1.AnnotationAllowances) != "" {
				t.Errorf("findings: %+v, annotations: %v", d.Findings, d.Object.GetAnnotations())
			}

			entries, err := allowance.ParseTrace(d.Object)
			if err != nil || entries[0].Initiator != "anna" || entries[0].Repaired == nil || len(entries[0].Trace) != 2 {
				t.Errorf("trace: %+v, %v", entries, err)
			}
		})
	}
}

// TestTheWebhookLetsThroughWhatIsCreatedAgain as the XR has it on record.
func TestTheWebhookLetsThroughWhatIsCreatedAgain(t *testing.T) {
	made := wish.Made{}
	made.Set("d", map[string]any{"a": "b"})
	is := v1alpha1.Repairs{Count: 1, First: 100, Last: 100, Of: made.Of("d")}

	for name, test := range map[string]struct {
		repairs v1alpha1.Repairs
		name    string
		gone    bool
		allowed bool
	}{
		"As it was":        {is, "d", false, true},
		"Otherwise":        {v1alpha1.Repairs{Count: 1, Of: "0123456789abcdef"}, "d", false, false},
		"Without a digest": {v1alpha1.Repairs{Count: 1}, "d", false, false},
		"Another one":      {is, "e", false, false},
		"Deleting":         {is, "d", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			xr := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "XApp",
				"metadata": map[string]any{"name": "app", "uid": "xr-uid", "generation": int64(3), "annotations": map[string]any{
					v1alpha1.AnnotationInitialized: `{"v":1}`,
					v1alpha1.AnnotationTrace:       "- {field: create, generation: 1, initiator: anna, trace: [{kind: XApp, name: app, generation: 1, field: create}]}",
				}},
				"status": map[string]any{"conditions": []any{map[string]any{
					"type": v1alpha1.ConditionState, "status": "True", "message": resource.FormatState(v1alpha1.State{Made: made.Format()}),
				}}},
			}}
			if test.gone {
				resource.Map(xr.Object, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}

			manager := managedfields.ManagerOf(xr)
			obj := withRepair(t, wishedDeployment(t, "web-2", manager), wish.KeyOfCreation, test.repairs)
			annotations := obj.GetAnnotations()
			annotations[resource.AnnotationComposed] = test.name
			obj.SetAnnotations(annotations)

			d := decision.Decide(request.Request{
				Basis:     request.Basis{Settings: request.Settings{Crossplane: crossplanesUser}, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
				Operation: request.OperationCreate, New: obj, Parent: xr, ParentSettles: true, Action: v1alpha1.ActionHold,
				User: policy.User{Name: crossplanesUser}, FieldManager: manager,
			})
			if d.Allowed() != test.allowed {
				t.Fatalf("findings: %+v", d.Findings)
			}

			if entries, err := allowance.ParseTrace(d.Object); test.allowed && (err != nil || entries[0].Initiator != "anna" || entries[0].Repaired == nil) {
				t.Errorf("trace: %+v, %v", entries, err)
			}
		})
	}
}
