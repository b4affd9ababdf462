// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const crossplane = "system:serviceaccount:crossplane-system:crossplane"

const steadyXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      ALLOWANCES
spec: {size: large}
`

const observedRDS = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata:
  name: db-rds
  generation: 7
  generateName: db-
  labels: {crossplane.io/composite: db, team: a}
  annotations:
    crossplane.io/composition-resource-name: rds
    crossplane.io/external-name: db-external
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/gate: "{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}"
  ownerReferences: [{apiVersion: example.org/v1alpha1, kind: XDatabase, name: db, uid: u1, controller: true, blockOwnerDeletion: true}]
  managedFields:
  - manager: apiextensions.crossplane.io/composed/6aa923b7fbecfc9cf7148036e209680c9de7e17acbac426e7ebda49398cb9de2
    operation: Apply
    fieldsV1:
      "f:metadata":
        "f:annotations": {"f:crossplane.io/composition-resource-name": {}, "f:kausality.io/desired-policies": {}}
        "f:generateName": {}
        "f:labels": {"f:crossplane.io/composite": {}, "f:team": {}}
        "f:ownerReferences": {'k:{"uid":"u1"}': {}}
      "f:spec":
        "f:managementPolicies": {}
        "f:forProvider": {"f:instanceClass": {}, "f:engine": {}, "f:tags": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}, {name: z, value: theirs}], zone: late}
status:
  conditions: [{type: Synced, status: "True", observedGeneration: 7}, {type: Ready, status: "True"}]
`

const desiredRDS = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata: {labels: {team: a}}
spec: {forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	if text == "" {
		return nil
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

	return u
}

func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()

	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the fixture", pairs[i])
		}

		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}

	return text
}

func allowing(mutation, verbs string) string {
	const trace = "trace: [{kind: XDatabase, name: db, generation: 12, field: spec.size}]"

	return strings.Replace(steadyXR, "ALLOWANCES",
		"[{kind: RDSInstance, mutation: "+mutation+", generation: 12, initiator: hans, "+trace+", id: '12.0', source: {type: Policy}}, "+
			"{relation: External, mutations: ["+verbs+"], generation: 12, initiator: hans, "+trace+", id: '12.0', source: {type: Policy}}]", 1)
}

func requestFor(t *testing.T, xr, observed, desired string) composition.Request {
	t.Helper()

	return composition.Request{
		XR: object(t, xr), Name: "rds", Observed: object(t, observed), Desired: object(t, desired),
		User: policy.User{Name: crossplane}, Basis: request.Basis{Settings: request.Settings{Crossplane: crossplane}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, Mode: v1alpha1.ModeHold, Room: v1alpha1.MaxWishBytes,
	}
}

func fields(held []condition.Held) []string {
	var out []string //nolint:prealloc // Nil when nothing is held.
	for _, h := range held {
		out = append(out, h.Change.Field)
	}

	return out
}
