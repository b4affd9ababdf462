// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// recordedDeployment is one as Crossplane applies it, with its wish recorded.
func recordedDeployment(t *testing.T, image string, replicas int64, manager string) *unstructured.Unstructured {
	t.Helper()

	u := wishedDeployment(t, image, manager)
	spec := resource.Map(u.Object, "spec")
	spec["replicas"] = replicas

	entry, _ := resource.List(u.Object, "metadata", "managedFields")[0].(map[string]any)
	resource.Map(entry, "fieldsV1", "f:spec")["f:replicas"] = map[string]any{}

	text, err := wish.RecordOf(map[string]any{"spec": spec}).Format("apps/v1", "Deployment")
	if err != nil {
		t.Fatal(err)
	}

	resource.Map(u.Object, "metadata", "annotations")[v1alpha1.AnnotationWish] = text

	return u
}

// TestTheRecordIsOfWhatIsStored has a webhook hold, and refuse, what a composition
// function let through with the policies that it saw.
func TestTheRecordIsOfWhatIsStored(t *testing.T) {
	const image, replicas = "spec.template.spec.containers[0].image", "spec.replicas"

	xr := func(allowances string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "XApp",
			"metadata": map[string]any{"name": "app", "uid": "xr-uid", "generation": int64(1), "annotations": map[string]any{
				v1alpha1.AnnotationInitialized: `{"v":1}`, v1alpha1.AnnotationAllowances: allowances,
			}},
		}}
	}

	for name, tc := range map[string]struct {
		reason     string
		action     v1alpha1.ValidationAction
		allowances string
		// new are the leaves whose new wish is recorded.
		new    map[string]bool
		denied bool
	}{
		"Held": {
			"Nothing of it is stored, and so nothing is recorded.",
			v1alpha1.ActionHold, "[]",
			map[string]bool{image: false, replicas: false},
			false,
		},
		"HeldInPart": {
			"What is let through is recorded beside what is held.", v1alpha1.ActionHold,
			"[{kind: Deployment, mutation: spec.replicas, generation: 1, initiator: hans, id: '1.0', source: {type: Policy}}]",
			map[string]bool{image: false, replicas: true},
			false,
		},
		"Warned": {"What passes is recorded.", v1alpha1.ActionWarn, "[]", map[string]bool{image: true, replicas: true}, false},
		"Denied": {"What is refused is not stored, and neither is its record.", v1alpha1.ActionDeny, "[]", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := xr(tc.allowances)
			manager := managedfields.ManagerOf(parent)
			old, obj := recordedDeployment(t, "web-1", 1, manager), recordedDeployment(t, "web-2", 2, manager)

			d := decision.Decide(request.Request{
				Operation: request.OperationUpdate, Parent: parent, Action: tc.action, Old: old, New: obj,
				User: policy.User{Name: crossplaneUser}, FieldManager: manager,
				Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
			})

			if d.Answer().Refuses() != tc.denied || len(d.Problems) > 0 {
				t.Fatalf("%s\ndenied: %t, problems: %v", tc.reason, d.Answer().Refuses(), d.Problems)
			}

			was, is, got := parsed(t, old), parsed(t, obj), parsed(t, d.Object)

			for field, isNew := range tc.new {
				path, err := fieldpath.Parse(field)
				if err != nil {
					t.Fatal(err)
				}

				if got.Same(is, obj.Object, path) != isNew || got.Same(was, old.Object, path) == isNew {
					t.Errorf("%s\nof %s the new wish is recorded: %t", tc.reason, field, !isNew)
				}
			}

			if tc.action == v1alpha1.ActionHold && firstContainer(d.Object)["image"] != "web-1" {
				t.Errorf("%s\nstored: %v", tc.reason, d.Object.Object["spec"])
			}
		})
	}
}

// TestAnElementThatIsHeldKeepsItsRecord has a webhook hold that a container is removed.
func TestAnElementThatIsHeldKeepsItsRecord(t *testing.T) {
	parent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "XApp",
		"metadata": map[string]any{"name": "app", "uid": "xr-uid", "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
	}}
	manager := managedfields.ManagerOf(parent)
	old, obj := recordedDeployment(t, "web-1", 1, manager), recordedDeployment(t, "web-1", 1, manager)

	pod := resource.Map(old.Object, "spec", "template", "spec")
	pod["containers"] = append([]any{map[string]any{"name": "a", "image": "first"}}, resource.List(pod, "containers")...)

	text, err := wish.RecordOf(map[string]any{"spec": old.Object["spec"]}).Format("apps/v1", "Deployment")
	if err != nil {
		t.Fatal(err)
	}

	resource.Map(old.Object, "metadata", "annotations")[v1alpha1.AnnotationWish] = text

	d := decision.Decide(request.Request{
		Operation: request.OperationUpdate, Parent: parent, Action: v1alpha1.ActionHold, Old: old, New: obj,
		User: policy.User{Name: crossplaneUser}, FieldManager: manager, Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
	})

	got := parsed(t, d.Object)

	for _, field := range []string{
		"spec.template.spec.containers[0].name", "spec.template.spec.containers[0].image",
		"spec.template.spec.containers[1].name", "spec.template.spec.containers[1].image",
	} {
		path, err := fieldpath.Parse(field)
		if err != nil {
			t.Fatal(err)
		}

		if !got.Same(parsed(t, old), old.Object, path) {
			t.Errorf("the record of %s is lost", field)
		}
	}
}

func parsed(t *testing.T, u *unstructured.Unstructured) *wish.Record {
	t.Helper()

	rec, err := wish.Parse(u)
	if err != nil || rec == nil {
		t.Fatalf("no record: %v", err)
	}

	return rec
}

func firstContainer(u *unstructured.Unstructured) map[string]any {
	m, _ := resource.List(u.Object, "spec", "template", "spec", "containers")[0].(map[string]any)

	return m
}
