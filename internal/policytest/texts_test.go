// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// TestWhereEverythingIsComparedTextsAreApart has want.yaml of an exact scenario without messages, and
// texts.yaml with all of them.
func TestWhereEverythingIsComparedTextsAreApart(t *testing.T) {
	const (
		asked = `Anna may not change the size.
-- request.yaml --
user: {name: anna, groups: [app-team]}
base: claim
policies: [../policies.yaml]
exact: true
-- new.yaml --
spec: {size: large}
`
		want = "-- want.yaml --\nfindings:\n- field: spec.size\n  lacks:\n  - policy: claim\n    what: Subject\n  verdict: Unallowed\noutcome: Warned\n"
	)

	type differences = []policytest.Difference

	got := run(t, files(map[string]string{"t/x.txtar": asked + want}))["t/x"]
	if got.Err != nil {
		t.Fatal(got.Err)
	}

	for i := range got.Differences {
		if got.Differences[i].Got != "" {
			got.Differences[i].Got = "*"
		}
	}

	missing := differences{{Path: "patched.yaml", Want: "{}", Got: "*"}, {Path: "texts.yaml", Want: "{}", Got: "*"}}
	if diff := cmp.Diff(missing, got.Differences); diff != "" {
		t.Errorf("differences, -want, +got:\n%s", diff)
	}

	mixed := run(t, files(map[string]string{"t/x.txtar": asked + want + "warnings: [none]\n"}))["t/x"]
	if !slices.Contains(mixed.Differences, policytest.Difference{Path: "warnings", Want: `["none"]`}) {
		t.Errorf("a message in want.yaml: %v", mixed.Differences)
	}
}

// TestTextsAreComparedWhereTheyAreThere also where not everything is.
func TestTextsAreComparedWhereTheyAreThere(t *testing.T) {
	const scenario = `Anna may not change the size.
-- request.yaml --
user: {name: anna, groups: [app-team]}
base: claim
policies: [../policies.yaml]
-- new.yaml --
spec: {size: large}
-- want.yaml --
allowed: false
-- texts.yaml --
`

	cases := map[string]struct {
		texts string
		want  string
	}{
		"as they are": {texts: `lacks: {spec.size: ['policy "claim": only Group platform-team may, not anna']}`},
		"others":      {texts: "warnings: ['no']", want: "texts.yaml: warnings[0]"},
		"unknown":     {texts: "warning: no", want: "error"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, files(map[string]string{"t/x.txtar": scenario + tc.texts + "\n"}))["t/x"]

			path := ""
			if got.Err != nil {
				path = "error"
			} else if len(got.Differences) > 0 {
				path = got.Differences[0].Path
			}

			if path != tc.want {
				t.Errorf("differs at %q, want %q: %v %v", path, tc.want, got.Differences, got.Err)
			}
		})
	}
}
