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
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// wishedDeployment is one that runs an image, whose field one manager has.
func wishedDeployment(t *testing.T, image, manager string) *unstructured.Unstructured {
	t.Helper()

	spec := func(image string) map[string]any {
		return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "image": image},
		}}}}
	}

	text, err := wish.RecordOf(map[string]any{"spec": spec("web-2")}).Format("apps/v1", "Deployment")
	if err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "d", "namespace": "default", "generation": int64(1),
			"annotations": map[string]any{v1alpha1.AnnotationWish: text},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "example.org/v1", "kind": "XApp", "name": "app", "uid": "xr-uid", "controller": true,
			}},
			"managedFields": []any{map[string]any{
				"manager": manager, "operation": "Apply", "apiVersion": "apps/v1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": map[string]any{
					"f:containers": map[string]any{`k:{"name":"c"}`: map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}}},
				}}}},
			}},
		},
		"spec": spec(image),
	}}
}

// A composition function that ran before somebody edited a field lets it
// through as no change; what it applies takes the edit back.
func TestAWishOverAnEditIsAChange(t *testing.T) {
	xr := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "XApp",
		"metadata": map[string]any{"name": "app", "uid": "xr-uid", "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
	}}
	manager := managedfields.ManagerOf(xr)

	for name, tc := range map[string]struct {
		manager string
		want    int
	}{
		"Rewritten": {manager: manager},
		"Edited":    {manager: "kubectl", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := decision.Decide(request.Request{
				Operation: request.OperationUpdate, Parent: xr, Action: v1alpha1.ActionHold,
				Old: wishedDeployment(t, "web-1", tc.manager), New: wishedDeployment(t, "web-2", manager),
				User: policy.User{Name: crossplaneUser}, FieldManager: manager,
				Basis: request.Basis{Settings: request.Settings{Crossplane: crossplaneUser}},
			})

			if len(d.Findings) != tc.want || len(d.Held) != tc.want {
				t.Errorf("findings are %v, held is %v, want %d", d.Findings, d.Held, tc.want)
			}

			// What is held now is no wish: Crossplane manages what is stored.
			rec, err := wish.Parse(d.Object)
			if err != nil {
				t.Fatal(err)
			}

			path := "spec.template.spec.containers[0].image"
			for _, f := range d.Findings {
				if rec.Same(rec, d.Object.Object, f.Change.Path) || f.Change.Field != path {
					t.Errorf("the wish of %s is still recorded", f.Change.Field)
				}
			}
		})
	}
}
