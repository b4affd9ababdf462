// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// gatedInstance is a managed resource with a gate, as some set leaves it.
func gatedInstance(wished bool, size int64, set ...string) *unstructured.Unstructured {
	annotations := map[string]any{
		v1alpha1.AnnotationDesiredPolicies: `{"v":1,"policies":["*"]}`,
		v1alpha1.AnnotationGate:            "{v: 1, state: Open, actions: [Update], generation: 2, since: \"2026-01-01T00:00:00Z\"}",
	}
	if wished {
		annotations[v1alpha1.AnnotationWish] = "{}"
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rds.example.org/v1", "kind": "Instance",
		"metadata": map[string]any{"name": "db", "generation": int64(2), "annotations": annotations},
		"spec":     map[string]any{"managementPolicies": resource.Values(set), "forProvider": map[string]any{"size": size}},
	}}
}

// A composition function stamps the set that it saw. Between that and Crossplane's
// write the manager may have moved the gate.
func TestAGateThatWasMovedMeanwhileIsLeftAsItIs(t *testing.T) {
	closed, open := []string{"Observe", "LateInitialize"}, []string{"Observe", "LateInitialize", "Update"}

	for name, tc := range map[string]struct {
		reason  string
		user    string
		manager string
		was, is []string
		taken   bool
		want    []string
	}{
		"Opened":  {reason: "The function saw it closed.", was: open, is: closed, want: open},
		"Closed":  {reason: "The function saw it open.", was: closed, is: open, want: closed},
		"Asked":   {reason: "No gate is moved to all: a later step of the pipeline asks for that, and Crossplane is to warn of it.", was: closed, is: []string{"*"}, want: []string{"*"}},
		"Paused":  {reason: "Nor to nothing.", was: closed, is: []string{}, want: []string{}},
		"NoStep":  {reason: "So it is for a pipeline without the function.", was: closed, is: open, taken: true, want: open},
		"Person":  {reason: "What somebody writes by hand is refused, and not overruled in silence.", user: "anna", was: closed, is: open, want: open},
		"Patched": {reason: "So is what Crossplane's account writes otherwise.", manager: "kubectl", was: closed, is: open, want: open},
	} {
		t.Run(name, func(t *testing.T) {
			req := request.Request{
				Operation: request.OperationUpdate, Old: gatedInstance(true, 1, tc.was...), New: gatedInstance(!tc.taken, 1, tc.is...),
				User: policy.User{Name: crossplaneUser}, FieldManager: managedfields.ComposedManager + "0",
				Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
			}

			if tc.user != "" {
				req.User.Name = tc.user
			}

			if tc.manager != "" {
				req.FieldManager = tc.manager
			}

			d := decision.Decide(req)

			if diff := cmp.Diff(tc.want, resource.Strings(d.Object.Object, "spec", "managementPolicies")); diff != "" {
				t.Errorf("%s\nmanagementPolicies, -want, +got:\n%s", tc.reason, diff)
			}

			if reported := len(d.Overruled) > 0; reported != cmp.Equal(tc.want, tc.was) {
				t.Errorf("%s\noverruled is %v", tc.reason, d.Overruled)
			}

			if len(d.Warnings)+len(d.Findings) > 0 {
				t.Errorf("%s\nwarnings %v, findings %v, want none", tc.reason, d.Warnings, d.Findings)
			}
		})
	}
}

// The API server gave the field to Crossplane before it asked: what it wanted there is
// not stored, so it is the manager's still.
func TestAGateThatWasMovedStaysOurs(t *testing.T) {
	entry := func(fields map[string]any) []any {
		return []any{map[string]any{"manager": gate.Manager, "operation": "Apply", "fieldsV1": fields}}
	}
	owns := entry(map[string]any{"f:spec": map[string]any{"f:managementPolicies": map[string]any{}}})

	was, is := gatedInstance(true, 1, "Observe", "LateInitialize"), gatedInstance(true, 1, "Observe", "LateInitialize", "Update")
	resource.Map(was.Object, "metadata")["managedFields"] = owns
	resource.Map(is.Object, "metadata")["managedFields"] = entry(map[string]any{})

	d := decision.Decide(request.Request{
		Operation: request.OperationUpdate, Old: was, New: is,
		User: policy.User{Name: crossplaneUser}, FieldManager: managedfields.ComposedManager + "0",
		Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
	})

	if diff := cmp.Diff(owns, resource.List(d.Object.Object, "metadata", "managedFields")); diff != "" {
		t.Errorf("managedFields, -want, +got:\n%s", diff)
	}
}

// Crossplane applies again what the function saw before the last move. All of it is put back, so nothing is to be written.
func TestAWriteThatIsAllPutBackOwnsNothing(t *testing.T) {
	owners := func(who string) []any { return []any{map[string]any{"manager": who, "operation": "Apply"}} }

	for name, tc := range map[string]struct {
		change func(u *unstructured.Unstructured)
		size   int64
		want   string
	}{
		"Set":        {change: func(u *unstructured.Unstructured) { setSet(u, "Observe", "LateInitialize", "Update") }, want: "before"},
		"Allowances": {change: func(u *unstructured.Unstructured) { setAllowances(u, "- {relation: External}\n") }, want: "before"},
		"Nothing":    {change: func(*unstructured.Unstructured) {}, want: "after"},
		"Beside":     {change: func(u *unstructured.Unstructured) { setSet(u, "Observe", "LateInitialize", "Update") }, size: 1, want: "after"},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := gatedInstance(true, 1, "Observe", "LateInitialize"), gatedInstance(true, 1+tc.size, "Observe", "LateInitialize")
			resource.Map(was.Object, "metadata")["managedFields"] = owners("before")
			resource.Map(is.Object, "metadata")["managedFields"] = owners("after")
			tc.change(is)

			d := decision.Decide(request.Request{
				Operation: request.OperationUpdate, Old: was, New: is,
				User: policy.User{Name: crossplaneUser}, FieldManager: managedfields.ComposedManager + "0",
				Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
			})

			if diff := cmp.Diff(owners(tc.want), resource.List(d.Object.Object, "metadata", "managedFields")); diff != "" {
				t.Errorf("managedFields, -want, +got:\n%s", diff)
			}
		})
	}
}

func setSet(u *unstructured.Unstructured, set ...string) {
	resource.Map(u.Object, "spec")["managementPolicies"] = resource.Values(set)
}

func setAllowances(u *unstructured.Unstructured, text string) {
	resource.Map(u.Object, "metadata", "annotations")[v1alpha1.AnnotationAllowances] = text
}

// What needs nobody's leave beside it is stored.
func TestAGateThatWasMovedPreventsNothingElseFromBeingStored(t *testing.T) {
	is := gatedInstance(true, 1, "Observe", "LateInitialize", "Update")
	resource.Map(is.Object, "metadata")["labels"] = map[string]any{"team": "a"}

	d := decision.Decide(request.Request{
		Operation: request.OperationUpdate, Old: gatedInstance(true, 1, "Observe", "LateInitialize"), New: is,
		User: policy.User{Name: crossplaneUser}, FieldManager: managedfields.ComposedManager + "0",
		Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
	})

	if got := resource.String(d.Object.Object, "metadata", "labels", "team"); got != "a" {
		t.Errorf("the label is %q, want a", got)
	}
}
