// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestWhatABrokenEnforcementDoesIsReported(t *testing.T) {
	for failurePolicy, want := range map[string]string{
		"Fail": "every change that it is about is refused", "Ignore": "what it should refuse goes through",
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e, generation: 2}
spec: {match: {resourceRules: []}, matchConditions: [{name: a, expression: "("}], validationActions: [Deny], failurePolicy: `+failurePolicy+`}
status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: Invalid, message: m}]}`), &u.Object); err != nil {
			t.Fatal(err)
		}

		got := enforcements(&State{Lists: map[Source]List{Enforcements: {Items: []*unstructured.Unstructured{u}}}})
		if len(got) != 1 || got[0].Why != want {
			t.Errorf("failurePolicy %s: %+v, want %q", failurePolicy, got, want)
		}
	}
}
