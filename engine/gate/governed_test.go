// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

func TestAManagedResourceIsGovernedByItsGateOrByWhatNobodyUnderstands(t *testing.T) {
	const gated, other = `{managementPolicies: ['*'], forProvider: {}}`, `{size: small}`

	cases := map[string]struct {
		reason, annotations, spec string
		want                      bool
	}{
		"None":     {reason: "It is not ours.", annotations: `{}`, spec: gated},
		"Function": {reason: "Its Composition runs the function.", annotations: `{kausality.io/desired-policies: "{\"v\":1,\"policies\":[\"*\"]}"}`, spec: gated, want: true},
		"Gate":     {reason: "It was gated before.", annotations: `{kausality.io/gate: "{state: Closed}"}`, spec: gated, want: true},
		"Broken":   {reason: "So it was, whatever that says.", annotations: `{kausality.io/gate: "{"}`, spec: gated, want: true},
		"Unknown":  {reason: "An annotation of another version may have been a gate's.", annotations: `{kausality.io/former: "{}"}`, spec: gated, want: true},
		"Empty":    {reason: "Whatever it says.", annotations: `{kausality.io/former: ""}`, spec: gated, want: true},
		"Theirs":   {reason: "Others name their annotations alike.", annotations: `{former: a, kausality.example.org/gate: a, my.kausality.io/gate: a}`, spec: gated},
		"NoGate":   {reason: "What else is ours says nothing of a gate.", annotations: `{kausality.io/trace: a, kausality.io/allowances: "[]", kausality.io/held: "[]", kausality.io/desired-policies: '{"v":1,"mode":"Audit"}'}`, spec: gated},
		"Other":    {reason: "An XR has no gate.", annotations: `{kausality.io/former: "{}"}`, spec: other},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := document(t, `{apiVersion: sql.example.org/v1, kind: Database, metadata: {name: d, annotations: `+tc.annotations+`}, spec: `+tc.spec+`}`)
			if got := management.Governed(u); got != tc.want {
				t.Errorf("%s\nGoverned: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}

	// None of this version is taken for one of another.
	for _, key := range v1alpha1.KnownAnnotations() {
		u := document(t, `{metadata: {annotations: {`+key+`: a}}}`)
		if list := managed.UnknownAnnotations(u); len(list) > 0 {
			t.Errorf("unknown: %v", list)
		}
	}
}
