// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/composition"
)

func TestWhatHasNotReachedTheExternalObjectIsSaid(t *testing.T) {
	xr := edit(t, steadyXR, "ALLOWANCES", "[]")
	asked := func(text string) string {
		return edit(t, observedRDS, "    kausality.io/gate:", `    kausality.io/asked: "`+text+"\"\n    kausality.io/gate:")
	}

	for name, tc := range map[string]struct {
		reason, observed, desired string
		want                      []string
	}{
		"Same": {"All is as it was asked for.", observedRDS, desiredRDS, nil},
		"Alone": {
			"The Composition asks for it, and it was allowed for the managed resource alone.",
			asked("{user: hans@example.com, spec: {forProvider: {instanceClass: tiny}}}"), desiredRDS,
			[]string{"RDSInstance db-rds: spec.forProvider.instanceClass is small, and tiny outside: no External Update is allowed for it, " +
				"which hans@example.com asked for: have a policy allow that with it, and ask for it again"},
		},
		"ByHand": {
			"Nobody composes it.",
			asked("{user: anna@example.com, spec: {forProvider: {zone: null}}}"), desiredRDS,
			[]string{"RDSInstance db-rds: spec.forProvider.zone is late, and (unset) outside: anna@example.com stored it, and it is put back before the gate opens"},
		},
		"TwoPeople": {
			"Each is named for what they did.",
			asked("{user: hans@example.com, users: {spec.forProvider.zone: anna@example.com}, spec: {forProvider: {instanceClass: tiny, zone: early}}}"), desiredRDS,
			[]string{
				"RDSInstance db-rds: spec.forProvider.instanceClass is small, and tiny outside: no External Update is allowed for it, " +
					"which hans@example.com asked for: have a policy allow that with it, and ask for it again",
				"RDSInstance db-rds: spec.forProvider.zone is late, and early outside: anna@example.com stored it, and it is put back before the gate opens",
			},
		},
		"PutBack": {
			"What the Composition asks for is put back in this run.",
			asked("{user: anna@example.com, spec: {forProvider: {instanceClass: tiny}}}"), strings.Replace(desiredRDS, "small", "tiny", 1), nil,
		},
		"Secret": {
			"A credential is not told.",
			strings.Replace(asked("{user: anna@example.com, spec: {forProvider: {masterPassword: null}}}"), "zone: late", "masterPassword: hunter2", 1), desiredRDS,
			[]string{"RDSInstance db-rds: spec.forProvider.masterPassword is (masked), and (unset) outside: anna@example.com stored it, and it is put back before the gate opens"},
		},
		"Unreadable": {"That it cannot be read is a problem.", asked("{"), desiredRDS, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := composition.Decide(request(t, xr, tc.observed, tc.desired))

			if diff := cmp.Diff(tc.want, out.Inside); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if len(out.Held) > 0 || (len(out.Problems) > 0) != (name == "Unreadable") {
				t.Errorf("%s\nheld %v, problems %v", tc.reason, out.Held, out.Problems)
			}
		})
	}
}
