// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

var errDownGate = errors.New("the policy cannot be read")

const changing = `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-1
  generation: 3
  annotations:
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/gate: "{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-11-20T10:00:00Z, allowances: [{relation: External, mutations: [Update], generation: 2, initiator: hans, policy: size, id: '2.0', source: {type: Policy, name: size}}]}"
    kausality.io/trace: "[{field: spec.forProvider.size, generation: 3, initiator: hans}]"
spec: {managementPolicies: [Observe, LateInitialize, Update], forProvider: {size: 2}}
status:
  conditions: [{type: Synced, status: "True", reason: ReconcileSuccess, observedGeneration: GENERATION, lastTransitionTime: "2026-11-20T10:00:00Z"}]
  atProvider: {size: 1}`

func TestTraceSaysWhatAnOpenGateWaitsFor(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason, generation string
		gates              func(string) *policy.Gate
		want               string
	}{
		"Synced": {reason: "The provider has not looked.", generation: "2", want: "It is waiting for the provider to sync generation 3 (it synced 2)"},
		"Landed": {reason: "It has, and nothing else is asked for.", generation: "3", want: "It is waiting for Kausality to move it"},
		"Broken": {
			reason: "What the policy says counts.", generation: "3", want: `It is waiting for closeWhen of policy "size" to be true`,
			gates: func(string) *policy.Gate { return &policy.Gate{Broken: errDownGate} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			u := parse(t, strings.Replace(changing, "GENERATION", tc.generation, 1))

			doc, err := documentOf(u, related{gates: tc.gates})
			if err != nil {
				t.Fatal(err)
			}

			if text := render(u, &doc, false); !strings.Contains(text, tc.want) {
				t.Errorf("%s\n%q is not in\n%s", tc.reason, tc.want, text)
			}

			xr := parse(t, taker)
			if doc, err = documentOf(xr, related{gates: tc.gates, children: []*unstructured.Unstructured{u}}); err != nil {
				t.Fatal(err)
			}

			if text := render(xr, &doc, false); !strings.Contains(text, "The gate of Instance db-1 is open, ") {
				t.Errorf("%s\nthe XR does not say so:\n%s", tc.reason, text)
			}
		})
	}
}
