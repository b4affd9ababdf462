// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bakery has lists and maps that are applied as a whole, and maps and keyed
// lists of one entry.
const bakery = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: bakery}
spec:
  selector: {matchLabels: {app: bakery}}
  strategy: {type: RollingUpdate}
  template:
    metadata: {labels: {app: bakery}}
    spec:
      securityContext: {runAsNonRoot: true}
      nodeSelector: {zone: a, disk: ssd}
      tolerations: [{key: dedicated, operator: Exists}, {key: zone, value: a}]
      affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchFields: [{key: metadata.name, operator: In, values: [x]}]}}]}}
      containers:
      - name: oven
        image: oven:1
        env: [{name: HEAT, value: high}]
        resources: {limits: {cpu: 1000m}}
`

func TestARemovalThatIsHeldStaysHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
	}{
		"LastOfMap":      {"The last field of a map goes with no other field to be held beside it.", "securityContext: {runAsNonRoot: true}", "securityContext: {}"},
		"LastOfDeepMap":  {"So it does where maps are nested.", "resources: {limits: {cpu: 1000m}}", "resources: {limits: {}}"},
		"LastOfList":     {"So does the last element of a list.", "env: [{name: HEAT, value: high}]", "env: []"},
		"OfAtomicMap":    {"A map that is applied as a whole is held as a whole.", "{zone: a, disk: ssd}", "{zone: a}"},
		"OfAtomicList":   {"An element of a list that is applied as a whole is known by another field.", "{key: zone, value: a}", "{key: zone}"},
		"Identifier":     {"It may lose the one by which it was known.", "{key: dedicated, operator: Exists}", "{operator: Exists}"},
		"ElementOfWhole": {"It may go itself.", "{key: dedicated, operator: Exists}, ", ""},
		"BelowWhole":     {"It may lose something deep in it.", "key: metadata.name, operator: In, ", "operator: In, "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.compose(bakery, false)

			before, changed := s.live.DeepCopy(), swap(bakery, tc.from, tc.to)

			for range 3 {
				if got := s.compose(changed, true); len(got.changes) == 0 {
					t.Errorf("%s\nno change of %s to %s is seen", tc.reason, tc.from, tc.to)
				}

				if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
					t.Fatalf("%s\nwhat is held was applied, -before, +after:\n%s", tc.reason, diff)
				}
			}

			want(t, "taken back", s.compose(bakery, true))

			if got := s.compose(changed, false); len(got.changes) == 0 {
				t.Error("no change is allowed")
			}

			if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff == "" {
				t.Error("what is allowed was not applied")
			}

			want(t, "applied", s.compose(changed, true))
		})
	}
}

// TestAMapThatIsStoredEmptyIsNoChange wishes an empty map in one that is applied as
// a whole, and that the API server stores without it.
func TestAMapThatIsStoredEmptyIsNoChange(t *testing.T) {
	s := newServer(t)
	s.compose(bakery, false)

	changed := swap(bakery, "selector: {matchLabels: {app: bakery}}", "selector: {matchLabels: {}}")
	if got := s.compose(changed, false); len(got.changes) == 0 {
		t.Error("no change is seen")
	}

	s.unwritten("applied", changed)
}
