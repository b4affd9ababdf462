// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// edited is a Deployment of which anna has edited the image of a container, and how many replicas
// there are, and of which the controller has seen that.
const edited = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: web-uid
  generation: 4
  annotations:
    kausality.io/held: |
      - {field: "spec.template.spec.containers[1].image", from: v1, cause: {type: Edit, user: anna, since: "2026-01-01T00:00:00Z"}, stored: {where: '["spec","template","spec","containers",{"name":"app"},"image"]'}}
      - {field: spec.replicas, from: "2", cause: {type: Edit, user: anna, since: "2026-01-02T00:00:00Z"}, stored: {}}
      - {field: spec.template.spec.token, masked: true, cause: {type: Edit, user: anna, since: "2026-01-02T00:00:00Z"}, stored: {}}
      - {field: "(more)", masked: true, cause: {type: Edit, user: anna, since: "2026-01-02T00:00:00Z"}, stored: {}}
spec:
  replicas: 3
  template: {spec: {token: secret, containers: [{name: proxy, image: p1}, {name: app, image: v2}]}}
status: {observedGeneration: 4}`

const ofEdits = `
- metadata: {name: template}
  spec:
    match: {apiGroup: apps, kind: Deployment, fields: [spec.template], cel: ["CONDITION"]}
    subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
    allow: [{apiGroup: apps, kind: ReplicaSet, mutations: [create, spec.replicas]}]
- metadata: {name: scale}
  spec:
    match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas]}
    subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
    allow: [{apiGroup: apps, kind: ReplicaSet, mutations: [spec.replicas]}]`

func TestAnApprovedEditIsAsIfSomebodyHadMadeItWhoMay(t *testing.T) {
	const image, replicas, token = "spec.template.spec.containers[1].image", "spec.replicas", "spec.template.spec.token"
	const moved = "spec.template.spec.containers[0].image"

	for name, tc := range map[string]struct {
		reason string
		// approve are fields of edits that are approved, change is what is other by then.
		approve   []string
		change    func(*unstructured.Unstructured)
		condition string
		// gives are allowances, as POLICY MUTATION@GENERATION FIELD, left the edits that stay.
		gives, left []string
	}{
		"Image": {
			reason: "What its policy allows follows, at the generation that asks for it.", approve: []string{image},
			gives: []string{"template create@4 " + image, "template spec.replicas@4 " + image}, left: []string{replicas, token, "(more)"},
		},
		"Replicas": {
			reason: "No other policy's.", approve: []string{replicas},
			gives: []string{"scale spec.replicas@4 spec.replicas"}, left: []string{image, token, "(more)"},
		},
		"Both": {
			reason: "Each by itself.", approve: []string{image, replicas},
			gives: []string{
				"scale spec.replicas@4 spec.replicas", "template create@4 " + image, "template spec.replicas@4 " + image,
			}, left: []string{token, "(more)"},
		},
		"Masked": {
			reason: "Whatever its value is.", approve: []string{token},
			change: func(u *unstructured.Unstructured) { setAt(t, u, "other", "spec", "template", "spec", "token") },
			gives:  []string{"template create@4 " + token, "template spec.replicas@4 " + token}, left: []string{image, replicas, "(more)"},
		},
		"OtherValue": {
			reason: "It is another edit by then.", approve: []string{replicas},
			change: func(u *unstructured.Unstructured) { setAt(t, u, int64(5), "spec", "replicas") }, left: []string{image, replicas, token, "(more)"},
		},
		"OtherObject": {
			reason: "So it is of another object.", approve: []string{replicas},
			change: func(u *unstructured.Unstructured) { u.SetUID("other") }, left: []string{image, replicas, token, "(more)"},
		},
		"OtherElement": {
			reason: "So it is of another element that is in that place.", approve: []string{image},
			change: func(u *unstructured.Unstructured) {
				setAt(t, u, []any{map[string]any{"name": "proxy", "image": "p1"}, map[string]any{"name": "other", "image": "v2"}}, "spec", "template", "spec", "containers")
			}, left: []string{image, replicas, token, "(more)"},
		},
		"Moved": {
			reason: "It is of the same element in another place.", approve: []string{image},
			change: func(u *unstructured.Unstructured) {
				setAt(t, u, []any{map[string]any{"name": "app", "image": "v2"}, map[string]any{"name": "proxy", "image": "p1"}}, "spec", "template", "spec", "containers")
			},
			gives: []string{"template create@4 " + moved, "template spec.replicas@4 " + moved}, left: []string{replicas, token, "(more)"},
		},
		"Condition": {
			reason: "A policy that does not hold gives nothing; the edit is approved all the same.", approve: []string{image},
			condition: "false", left: []string{replicas, token, "(more)"},
		},
		"BeforeAndAfter": {
			reason: "Policies see what was there before.", approve: []string{image},
			condition: "oldObject.spec.template.spec.containers[1].image == 'v1' && object.spec.template.spec.containers[1].image == 'v2'",
			gives:     []string{"template create@4 " + image, "template spec.replicas@4 " + image}, left: []string{replicas, token, "(more)"},
		},
		"Unlisted": {
			reason: "What the record has no room for nobody approves.", approve: []string{"(more)"}, left: []string{image, replicas, token, "(more)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := fixture.Parse(t, edited)
			req := request.Request{Operation: request.OperationUpdate, User: policy.User{Name: "berta"}}
			req.Basis.Now = time.Unix(0, 0)
			req.Basis.Policies = editPolicies(t, tc.condition)

			recorded, err := input.RecordedEdits(u)
			if err != nil {
				t.Fatal(err)
			}

			for _, e := range recorded {
				for _, field := range tc.approve {
					if e.Field == field {
						req.Approved = append(req.Approved, request.ApprovedEdit{
							Digest: e.Digest, Initiator: "berta", Hop: v1alpha1.Hop{Kind: "ChangeApproval", Name: "ok", Generation: 1, Field: "spec"},
						})
					}
				}
			}

			if tc.change != nil {
				tc.change(u)
			}

			req.Old, req.New = u, u.DeepCopy()
			got := decision.Decide(req).Object

			if diff := cmp.Diff(tc.gives, given(t, got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\ngiven, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.left, editedFields(t, got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nleft, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func setAt(t *testing.T, u *unstructured.Unstructured, v any, fields ...string) {
	t.Helper()

	if err := unstructured.SetNestedField(u.Object, v, fields...); err != nil {
		t.Fatal(err)
	}
}

func editPolicies(t *testing.T, condition string) *policy.Set {
	t.Helper()

	if condition == "" {
		condition = "true"
	}

	var list []v1alpha1.AllowancePolicy
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(ofEdits, "CONDITION", condition)), &list); err != nil {
		t.Fatal(err)
	}

	out, bad := policy.NewCache().Set(list)
	if len(bad) > 0 {
		t.Fatal(bad)
	}

	return out
}

// given are the allowances of an object, all of which berta's approval gave.
func given(t *testing.T, u *unstructured.Unstructured) []string {
	t.Helper()

	list, err := allowance.Parse(u)
	if err != nil {
		t.Fatal(err)
	}

	out := make([]string, 0, len(list))

	for _, a := range list {
		if a.Initiator != "berta" || len(a.Trace) != 2 || a.Trace[0].Kind != "ChangeApproval" || a.Digest != "" {
			t.Errorf("allowance %+v", a)
		}

		out = append(out, fmt.Sprintf("%s %s@%d %s", a.Policy, a.Mutation, a.Generation, allowance.Field(a)))
	}

	return out
}

func editedFields(t *testing.T, u *unstructured.Unstructured) []string {
	t.Helper()

	list, err := allowance.ParseStored(u)
	if err != nil {
		t.Fatal(err)
	}

	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, e.Field)
	}

	return out
}
