// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
)

func TestAResourceWithoutAGateIsPendingUntilItsProviderHasSeenIt(t *testing.T) {
	cases := map[string]struct {
		reason           string
		record, synced   string
		ungated, pending bool
	}{
		"Seen":    {reason: "Nothing waits for a gate.", record: `v: 1\nstate: Ungated\n`, synced: `{type: Synced, status: "True", observedGeneration: 4}`, ungated: true},
		"Unseen":  {reason: "The provider has not come to it.", record: `v: 1\nstate: Ungated\n`, synced: `{type: Synced, status: "True", observedGeneration: 3}`, ungated: true, pending: true},
		"Nothing": {reason: "A provider that names no generation has always seen it.", record: `v: 1\nstate: Ungated\n`, synced: `{type: Synced, status: "True"}`, ungated: true},
		"Open":    {reason: "An open gate is waited for.", record: "{v: 1, state: Open, generation: 4}", synced: `{type: Synced, status: "True", observedGeneration: 4}`, pending: true},
		"Unknown": {reason: "So is one that nothing is known of.", record: "{v: 1, state: Ajar, generation: 4}", synced: `{type: Synced, status: "True", observedGeneration: 4}`, pending: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(`{metadata: {generation: 4, annotations: {kausality.io/gate: "`+tc.record+`",
				kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 4, initiator: hans, id: '4.0', source: {type: Policy}}]"}},
				spec: {managementPolicies: ["*"], forProvider: {}}, status: {conditions: [`+tc.synced+`]}}`), &u.Object); err != nil {
				t.Fatal(err)
			}

			if got := managed.Ungated(u); got != tc.ungated {
				t.Errorf("%s\nUngated: %v", tc.reason, got)
			}

			if got := gate.Pending(u); got != tc.pending {
				t.Errorf("%s\nPending: %v", tc.reason, got)
			}
		})
	}
}
