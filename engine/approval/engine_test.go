// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestTheEngineLetsThroughWhatOneApprovalGivesEachOnce of two changes of one object.
func TestTheEngineLetsThroughWhatOneApprovalGivesEachOnce(t *testing.T) {
	const crossplane = "system:serviceaccount:crossplane-system:crossplane"

	object := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}

		return u
	}
	xrOf := func(size, color string) *unstructured.Unstructured {
		return object(`
apiVersion: example.org/v1
kind: XDatabase
metadata: {name: db-x, uid: xr-uid, generation: 5, labels: {crossplane.io/claim-name: db, crossplane.io/claim-namespace: team-a}, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: ` + size + `, color: ` + color + `, claimRef: {apiVersion: example.org/v1, kind: Database, namespace: team-a, name: db}}`)
	}
	claim := object(`
apiVersion: example.org/v1
kind: Database
metadata: {namespace: team-a, name: db, uid: claim-uid, generation: 3, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: huge, color: red, resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x}}`)
	ask := func(old, is *unstructured.Unstructured) decision.Decision {
		req := request.Request{Operation: request.OperationUpdate, Old: old, New: is, Parent: claim, User: policy.User{Name: crossplane}}
		req.Basis.Settings.Crossplane = crossplane

		return decision.Decide(req)
	}

	held := ask(xrOf("small", "blue"), xrOf("huge", "red")).Held
	if len(held) != 2 {
		t.Fatalf("held: %+v", held)
	}

	cha := by("a", "berta")
	parent := v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Database", Namespace: "team-a", Name: "db", UID: "claim-uid"}

	list := make([]v1alpha1.Allowance, 0, len(held))
	for _, h := range held {
		list = append(list, approval.Allowances(v1alpha1.HeldChange{
			Ref:    v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x", UID: "xr-uid"},
			Parent: &parent, Field: h.Field, Digest: h.Digest,
		}, &cha, 3, nil)...)
	}

	annotations := claim.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(list)
	claim.SetAnnotations(annotations)

	first := ask(xrOf("small", "blue"), xrOf("huge", "blue"))
	if !first.Allowed() {
		t.Fatalf("the first: %+v", first.Findings)
	}

	second := first.Object.DeepCopy()
	if err := unstructured.SetNestedField(second.Object, "red", "spec", "color"); err != nil {
		t.Fatal(err)
	}

	d := ask(first.Object, second)
	if !d.Allowed() {
		t.Fatalf("the second: %+v", d.Findings)
	}

	for _, a := range list {
		if !approval.Used(d.Object, a) {
			t.Errorf("%s does not show its use", a.Mutation)
		}
	}

	back := d.Object.DeepCopy()
	if err := unstructured.SetNestedField(back.Object, "small", "spec", "size"); err != nil {
		t.Fatal(err)
	}

	if again := ask(back, d.Object); again.Allowed() {
		t.Error("it is used twice")
	}
}
