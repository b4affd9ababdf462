// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

func TestWhatWasHeldAndStoredMeansTheSame(t *testing.T) {
	const held = "[{field: spec.size, from: a, to: b, user: anna, reason: why, digest: 'sha256:1', at: '4.0'}, {field: (2 more), reason: r}]"

	const edits = "[{field: 'spec.l[1].v', where: '[\"spec\",\"l\",{\"name\":\"x\"},\"v\"]', user: hans, uid: u, groups: [g], from: 1..., digest: ab, " +
		"since: '2024-01-01T00:00:00Z', at: '3.0', approvals: 2}]"

	annotations := map[string]any{"kausality.io/held": held, "kausality.io/edits": edits}
	heldAnnotations(annotations, true)

	want := map[string]any{"kausality.io/held": `- field: spec.l[1].v
  from: 1...
  cause:
    type: Drift
    user: hans
    since: "2024-01-01T00:00:00Z"
  at: "3.0"
  stored:
    where: '["spec","l",{"name":"x"},"v"]'
    uid: u
    groups:
    - g
    from: ab
    approvals: 2
- field: spec.size
  from: a
  to: b
  digest: sha256:1
  cause:
    type: Drift
    user: anna
  at: "4.0"
  missing: why
- field: (2 more)
  missing: too many to list
`}
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	again := map[string]any{"kausality.io/held": annotations["kausality.io/held"]}
	heldAnnotations(again, true)

	if !cmp.Equal(again, annotations) {
		t.Errorf("converted again: %v", again)
	}
}

func TestTextsOfTheCorpusAreConverted(t *testing.T) {
	for name, text := range map[string]string{
		"Quoted": `{metadata: {annotations: {kausality.io/edits: "[{field: spec.size, user: anna, from: \"1\", since: 2024-01-01T00:00:00Z}]"}}}`,
		"Block": "metadata:\n  annotations:\n    kausality.io/edits: |\n      - {field: spec.size, user: anna, from: \"1\", since: 2024-01-01T00:00:00Z}\n" +
			"    other: x\n",
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(HeldText(text)), &object); err != nil {
				t.Fatal(err)
			}

			list, err := allowance.ParseStored(&unstructured.Unstructured{Object: object})
			if err != nil || len(list) != 1 || list[0].Field != "spec.size" || list[0].From != "1" || allowance.Author(list[0]) != "anna" ||
				allowance.StoredSince(list[0]).IsZero() {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

func TestWhatWasWrittenIsConverted(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"kausality.io/held": "- field: spec.a\n  from: x\n  cause:\n    type: Edit\n    user: anna\n  stored: {}\n- field: spec.b\n  to: z\n",
	}}}

	for name, tc := range map[string]struct {
		patch map[string]any
		want  any
	}{
		"EditsRemoved": {patch: map[string]any{"kausality.io/edits": nil}, want: "- field: spec.b\n  to: z\n"},
		"AllRemoved":   {patch: map[string]any{"kausality.io/edits": nil, "kausality.io/held": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			heldPatch(map[string]any{"metadata": map[string]any{"annotations": tc.patch}}, object, false)

			if diff := cmp.Diff(map[string]any{"kausality.io/held": tc.want}, tc.patch); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
