// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestAKindWhoseDefinitionIsAwayIsStillStamped for its first objects may come before its rule.
func TestAKindWhoseDefinitionIsAwayIsStillStamped(t *testing.T) {
	const xdatabase, instance = "example.org/v1, Kind=XDatabase", "rds.aws.upbound.io/v1, Kind=Instance"

	all := fixture.ServedKinds()
	others, newer := all[:len(all)-1], slices.Clone(all)
	newer[len(newer)-1].GVK.Version = "v2"

	for name, tc := range map[string]struct {
		reason string
		served []kind.Served
		// policy is the one that there is by then.
		policy string
		want   []string
	}{
		"Away":    {"It may come back.", others, fixture.ClaimPolicy, []string{xdatabase, instance}},
		"AllAway": {"So may all of them.", nil, fixture.ClaimPolicy, []string{xdatabase, instance}},
		"Back": {
			"It is asked about as it is served, and once.", newer, fixture.ClaimPolicy,
			[]string{xdatabase, "rds.aws.upbound.io/v2, Kind=Instance"},
		},
		"Unnamed": {"Nobody names it any more.", others, fixture.DeletePolicy, []string{"/v1, Kind=Pod", "apps/v1, Kind=ReplicaSet"}},
	} {
		t.Run(name, func(t *testing.T) {
			stamped := func(served []kind.Served, before []GovernedKind, policy string) []GovernedKind {
				want := Config{Policies: fixture.Documents[v1alpha1.AllowancePolicy](t, policy)}
				named, _ := kind.Named(served, want.Names())

				return Awaited(GovernedKinds(want, named, nil), before, want.Names())
			}

			after := stamped(tc.served, stamped(all, nil, fixture.ClaimPolicy), tc.policy)

			got := make([]string, 0, len(after))
			for _, k := range after {
				got = append(got, k.Served.GVK.String())
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
