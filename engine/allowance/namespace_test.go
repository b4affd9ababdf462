// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

func hop(kind string, namespace ...string) v1alpha1.Hop {
	h := v1alpha1.Hop{Kind: kind, Name: "db", Generation: 2, Field: "spec.size"}
	for _, ns := range namespace {
		h.Namespace = &ns
	}

	return h
}

func TestAHopNamesTheNamespaceThatIsNotTheCarriers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason   string
		have     []v1alpha1.Hop
		from, to string
		want     []v1alpha1.Hop
	}{
		"Claim":  {"An XR is in no namespace.", []v1alpha1.Hop{hop("Claim")}, "a", "", []v1alpha1.Hop{hop("Claim", "a")}},
		"Below":  {"Nor is what it composes.", []v1alpha1.Hop{hop("Claim", "a"), hop("XR")}, "", "", []v1alpha1.Hop{hop("Claim", "a"), hop("XR")}},
		"Same":   {"All is in one namespace.", []v1alpha1.Hop{hop("XR")}, "a", "a", []v1alpha1.Hop{hop("XR")}},
		"Scoped": {"The XR is in none.", []v1alpha1.Hop{hop("XR")}, "", "a", []v1alpha1.Hop{hop("XR", "")}},
		"Home": {
			"It comes back to the Claim's.",
			[]v1alpha1.Hop{hop("Claim", "a"), hop("XR")},
			"", "a",
			[]v1alpha1.Hop{hop("Claim"), hop("XR", "")},
		},
		"Elsewhere": {
			"A Claim that an XR composes has an XR of its own.",
			[]v1alpha1.Hop{hop("XR", ""), hop("Claim")},
			"b", "",
			[]v1alpha1.Hop{hop("XR"), hop("Claim", "b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			before := cmp.Diff(nil, tc.have)

			if diff := cmp.Diff(tc.want, allowance.MoveTrace(tc.have, tc.from, tc.to)); diff != "" {
				t.Errorf("%s\nMoveTrace, -want, +got:\n%s", tc.reason, diff)
			}

			if cmp.Diff(nil, tc.have) != before {
				t.Errorf("%s\nthe parent's own is changed", tc.reason)
			}
		})
	}
}

// What versions wrote that knew of no namespaces.
const older = `- field: spec.size
  generation: 2
  initiator: hans
  trace:
  - kind: Claim
    name: db
    generation: 2
    field: spec.size
`

func TestATraceWithoutNamespacesReadsAsItWas(t *testing.T) {
	t.Parallel()

	want := []v1alpha1.TraceEntry{{Field: "spec.size", Generation: 2, Initiator: "hans", Trace: []v1alpha1.Hop{hop("Claim")}}}

	got, err := allowance.ParseTrace(carrying(v1alpha1.AnnotationTrace, older))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("ParseTrace: %v, -want, +got:\n%s", err, diff)
	}

	if again := allowance.FormatList(got); again != older {
		t.Errorf("written again, -first, +again:\n%s", cmp.Diff(older, again))
	}
}

// TestANamespaceTakesTheBytesOfItsLine of each annotation that names it, and none
// where all is in one.
func TestANamespaceTakesTheBytesOfItsLine(t *testing.T) {
	t.Parallel()

	size := func(claim v1alpha1.Hop, xr v1alpha1.Hop) int {
		return len(allowance.FormatList([]v1alpha1.TraceEntry{{
			Field: "spec.size", Generation: 2, Initiator: "hans", Trace: []v1alpha1.Hop{claim, xr, hop("Object")},
		}}))
	}

	plain := size(hop("Claim"), hop("XR"))

	for want, got := range map[int]int{
		len("    namespace: team-a\n"): size(hop("Claim", "team-a"), hop("XR")) - plain,
		len("    namespace: \"\"\n"):   size(hop("Claim"), hop("XR", "")) - plain,
	} {
		if got != want {
			t.Errorf("it takes %d bytes more, want %d", got, want)
		}
	}
}
