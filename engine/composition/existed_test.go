// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
)

func TestWhatExistedBeforeItsResourceIsReportedAsHeld(t *testing.T) {
	xr := edit(t, steadyXR, "ALLOWANCES", "[]")
	existed := edit(t, observedRDS, "{v: 1, state: Closed,", "{v: 1, state: Closed, existed: true,")

	for name, tc := range map[string]struct {
		reason, observed, shows string
		want                    []string
	}{
		"Differs":      {"It has other values.", existed, "{instanceClass: large, engine: mysql}", []string{"spec.forProvider.engine", "spec.forProvider.instanceClass"}},
		"Same":         {"It has the same values.", existed, "{instanceClass: small, engine: postgres, arn: x}", nil},
		"Defaults":     {"What the other side adds is no difference.", existed, "{tags: [{name: a, value: b, id: 1}, {name: z, value: theirs, id: 2}], x: y}", nil},
		"Element":      {"An element of a list is.", existed, "{tags: [{name: a, value: c}, {name: z, value: theirs}]}", []string{"spec.forProvider.tags[0].value"}},
		"NotShown":     {"Nothing tells what it has.", existed, "{arn: x}", []string{"spec.forProvider"}},
		"Made":         {"Its provider made it.", observedRDS, "{instanceClass: large}", nil},
		"ObservedOnly": {"Only that is held that it is to be changed.", edit(t, existed, `"policies":["*"]`, `"policies":["Observe"]`), "{instanceClass: large}", []string{"spec.managementPolicies"}},
	} {
		t.Run(name, func(t *testing.T) {
			observed := edit(t, tc.observed, "status:\n", "status:\n  atProvider: "+tc.shows+"\n")
			out := composition.Decide(requestFor(t, xr, observed, desiredRDS))

			if diff := cmp.Diff(tc.want, fields(out.Held)); diff != "" {
				t.Errorf("%s\nHeld, -want, +got:\n%s", tc.reason, diff)
			}

			if out.Desired == nil || out.Pending != "" {
				t.Errorf("%s\nDecide: %+v", tc.reason, out)
			}
		})
	}

	observed := edit(t, existed, "status:\n", "status:\n  atProvider: {instanceClass: large, engine: postgres}\n")
	out := composition.Decide(requestFor(t, xr, observed, desiredRDS))

	const want = "instanceClass of RDSInstance db-rds (large → small); the external object existed before RDSInstance"
	if len(out.Held) != 1 || !strings.Contains(strings.ReplaceAll(out.Held[0].String(), `"`, ""), want) {
		t.Errorf("it says %v, want %q", out.Held, want)
	}

	if !managed.Existing(object(t, existed)) || managed.Existing(object(t, observedRDS)) {
		t.Error("the gate's record says what existed")
	}
}
