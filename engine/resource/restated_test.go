// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestConditionsAreNotSaidOnceMoreAsTheyWere(t *testing.T) {
	const stored = `
metadata: {managedFields: [{manager: before}]}
status:
  size: 1
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Kausality, status: "True", message: "generation 2: settled"}
  - {type: Responsive, status: "True", reason: WatchCircuitClosed}
`

	for name, tc := range map[string]struct {
		reason  string
		applied string
		want    string
	}{
		"Same": {
			reason:  "Nothing is said anew.",
			applied: stored,
		},
		"AsRead": {
			reason: "What Crossplane sets anew at the end stays as it is until then, and so does who owns it.",
			applied: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 1
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1}
  - {type: Kausality, status: "True", message: "generation 1: settled"}
  - {type: Responsive, status: "True", reason: WatchCircuitClosed}
`,
			want: stored,
		},
		"Pending": {
			reason: "What is new of others is stored, for Crossplane may not say it again, and so are fields of the status.",
			applied: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 2
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1}
  - {type: Responsive, status: "False", reason: WatchCircuitOpen}
  - {type: Theirs, status: "True"}
`,
			want: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 2
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Responsive, status: "False", reason: WatchCircuitOpen}
  - {type: Theirs, status: "True"}
`,
		},
		"Others": {
			reason:  "Where nothing of ours and of what Crossplane sets at the end differs, nothing is kept.",
			applied: `{status: {conditions: [{type: Responsive, status: "False"}, {type: Kausality, status: "True", message: "generation 2: settled"}]}}`,
		},
		"SinceAnotherTime": {
			reason: "What others say the same since another time stays as it is: with a late cache two times would take turns.",
			applied: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 1
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Kausality, status: "True", message: "generation 2: settled"}
  - {type: Responsive, status: "True", reason: WatchCircuitClosed, lastTransitionTime: "2026-01-01T00:00:00Z"}
`,
			want: stored,
		},
		"OfALaterGeneration": {
			reason: "What others say of a later generation is stored, for Crossplane does not say it again.",
			applied: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 1
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Kausality, status: "True", message: "generation 1: settled"}
  - {type: Responsive, status: "True", reason: WatchCircuitClosed, observedGeneration: 3}
`,
			want: `
metadata: {managedFields: [{manager: after}]}
status:
  size: 1
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Kausality, status: "True", message: "generation 2: settled"}
  - {type: Responsive, status: "True", reason: WatchCircuitClosed, observedGeneration: 3}
`,
		},
		"First": {
			reason:  "What is not stored is not kept.",
			applied: `{status: {conditions: [{type: Synced, status: "True"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := read(t, stored), read(t, tc.applied)
			before := is.DeepCopy()

			var want map[string]any
			if tc.want != "" {
				want = read(t, tc.want).Object
			}

			var got map[string]any
			if out := resource.KeepRestated(was, is); out != nil {
				got = out.Object
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, is); diff != "" {
				t.Errorf("what is applied was modified:\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}
