// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

func TestGuardsStayOverWhatIsOrphaned(t *testing.T) {
	const (
		record   = `annotations: {kausality.io/gate: "{v: 1, state: Closed, generation: 1}", kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}`
		owned    = `ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: a, controller: true}]`
		deleting = `deletionTimestamp: "2026-01-01T00:00:00Z"`
		store    = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, uid: `
	)

	cases := map[string]struct {
		reason       string
		meta, parent string
		runs, want   bool
	}{
		"NotOurs":   {reason: "What has no gate of ours needs no guard.", meta: owned},
		"Leaving":   {reason: "Its deletion is still guarded.", meta: record + ", " + deleting, want: true},
		"NoParent":  {reason: "What stands by itself is its owner's own.", meta: record},
		"Gone":      {reason: "Its owner is gone, and its own deletion is not allowed.", meta: record + ", " + owned, want: true},
		"Another":   {reason: "One of the same name is another owner.", meta: record + ", " + owned, parent: store + `b}}`, want: true},
		"Going":     {reason: "The owner is on its way out.", meta: record + ", " + owned, parent: store + `a, ` + deleting + `}}`, want: true},
		"Governed":  {reason: "The function still runs for the owner.", meta: record + ", " + owned, parent: store + `a}}`, runs: true, want: true},
		"Abandoned": {reason: "Somebody took the function out of the Composition.", meta: record + ", " + owned, parent: store + `a}}`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := document(t, `{apiVersion: sql.example.org/v1, kind: Database, metadata: {name: d, `+tc.meta+`}, spec: {managementPolicies: [Observe], forProvider: {}}}`)

			var parent *unstructured.Unstructured
			if tc.parent != "" {
				parent = document(t, tc.parent)
			}

			if got := gate.Left(u, parent, tc.runs); got != tc.want {
				t.Errorf("%s\nLeft: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func document(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}
