// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// trim returns what the cache holds of a resource.
func trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetAPIVersion("db.example.org/v1")
	gate.Trim(out, nil)

	return out
}

// That plans are the same the property tests show, for any resource and in any
// history.
func TestTrimLeavesWhatAGateCompares(t *testing.T) {
	const (
		closed  = "{v: 1, state: Closed, generation: 1, consumed: 3}"
		pending = "[{relation: External, mutations: [Update], generation: 5, initiator: hans, id: '5.0', source: {type: Policy}}]"
	)

	cases := map[string]struct {
		reason           string
		gate, allowances string
		whole            bool
	}{
		"Unseen":   {reason: "What no change was asked of is taken over as it is."},
		"Closed":   {reason: "A closed gate compares nothing.", gate: closed, allowances: "[]"},
		"Open":     {reason: "An open gate closes when the status shows what is asked for.", gate: "{v: 1, state: Open, generation: 1}", whole: true},
		"Pending":  {reason: "A gate that is about to open may find the change applied.", gate: closed, allowances: pending, whole: true},
		"Inherits": {reason: "An allowance for children is none for the gate.", gate: closed, allowances: "[{kind: Pod, mutation: spec, generation: 5, id: '5.0', source: {type: Policy}}]"},
		"Foreign": {
			reason: "No gate serves another system's verbs.",
			gate:   closed, allowances: "[{relation: External, mutations: [apply], generation: 5, id: '5.0', source: {type: Policy}}]",
		},
		"BrokenGate":       {reason: "What a broken record says may be told later.", gate: "{", whole: true},
		"UnknownState":     {reason: "A newer version's record is as good as broken.", gate: "{state: Ajar, generation: 1}", whole: true},
		"BrokenAllowances": {reason: "What broken allowances say may be told later.", gate: closed, allowances: "{", whole: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{
				"kind": "Database",
				"metadata": map[string]any{
					"name": "db", "generation": int64(4), "labels": map[string]any{"a": "b"}, "managedFields": []any{map[string]any{"manager": "m"}},
				},
				"spec":   map[string]any{"forProvider": map[string]any{"size": int64(1)}, "managementPolicies": []any{"Observe"}},
				"status": map[string]any{"atProvider": map[string]any{"size": int64(1)}, "conditions": []any{map[string]any{"type": "Ready"}}},
			}}
			u.SetAnnotations(map[string]string{"a": "b"})

			for key, value := range map[string]string{v1alpha1.AnnotationGate: tc.gate, v1alpha1.AnnotationAllowances: tc.allowances} {
				if value != "" {
					_ = unstructured.SetNestedField(u.Object, value, "metadata", "annotations", key)
				}
			}

			got := trim(u)

			want := u.DeepCopy()
			want.SetAPIVersion("db.example.org/v1")
			want.SetManagedFields(nil)

			if !tc.whole {
				resource.Trim(want)
				identity.Set(want, identity.Of(u, nil))
			}

			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("%s\nTrim, -want, +got:\n%s", tc.reason, diff)
			}

			if _, shown := resource.Value(got.Object, "status", "atProvider"); shown != tc.whole {
				t.Errorf("%s\nthe status shows what is there: %t, want %t", tc.reason, shown, tc.whole)
			}
		})
	}
}
