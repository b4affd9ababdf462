// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

func TestWantNeedOnlySayWhatMatters(t *testing.T) {
	const anna = `Anna may not change the size.
-- request.yaml --
user: {name: anna, groups: [app-team]}
base: claim
policies: [../policies.yaml]
-- new.yaml --
spec: {size: large}
`

	type differences = []policytest.Difference

	cases := map[string]struct {
		scenario string
		want     string
		differ   differences
	}{
		"allowed":                            {scenario: edited, want: "allowed: true"},
		"not allowed":                        {scenario: anna, want: "{allowed: false}"},
		"allowed and should not be":          {scenario: edited, want: "allowed: false", differ: differences{{Path: "allowed", Want: "false", Got: "true"}}},
		"not allowed and should be":          {scenario: anna, want: "allowed: true", differ: differences{{Path: "allowed", Want: "true", Got: "false"}}},
		"an outcome":                         {scenario: edited, want: "outcome: Allowed"},
		"another outcome":                    {scenario: anna, want: "outcome: Denied", differ: differences{{Path: "outcome", Want: `"Denied"`, Got: `"Warned"`}}},
		"a part of an element":               {scenario: anna, want: "findings: [{field: spec.size, lacks: [{what: Subject}]}]"},
		"another value of an element":        {scenario: anna, want: "findings: [{field: spec.engine}]", differ: differences{{Path: "findings[0].field", Want: `"spec.engine"`, Got: `"spec.size"`}}},
		"more elements":                      {scenario: anna, want: "findings: [{}, {}]", differ: differences{{Path: "findings[0]", Want: "{}", Got: `*`}, {Path: "findings[1]", Want: "{}"}}},
		"fewer elements":                     {scenario: anna, want: "findings: [{field: spec.size, lacks: []}]", differ: differences{{Path: "findings[0].lacks[0]", Got: `*`}}},
		"nothing, where there is something":  {scenario: anna, want: "{}", differ: differences{{Want: "{}", Got: `*`}}},
		"an empty list of what is not there": {scenario: edited, want: "{warnings: [], denied: '', allowed: true}"},
		"an empty list of what is there":     {scenario: edited, want: "findings: []", differ: differences{{Path: "findings[0]", Got: `*`}}},
		"what is not there":                  {scenario: edited, want: "denied: none", differ: differences{{Path: "denied", Want: `"none"`}}},
		"a patch":                            {scenario: edited, want: "allowed: true\n-- patched.yaml --\nmetadata: {annotations: {kausality.io/held: ''}}"},
		"another patch": {
			scenario: edited, want: "allowed: true\n-- patched.yaml --\nmetadata: {annotations: {kausality.io/trace: none}}",
			differ: differences{{Path: "patched.yaml: metadata.annotations[kausality.io/trace]", Want: `"none"`, Got: `*`}},
		},
		"a patch that takes away": {
			scenario: edited, want: "allowed: true\n-- patched.yaml --\nspec: {size: null}", differ: differences{{Path: "patched.yaml: spec", Want: `{"size":null}`}},
		},
		"what no policy is about": {
			scenario: "Nobody says anything.\n-- request.yaml --\nuser: {name: anna}\nbase: claim\n-- new.yaml --\nspec: {size: large}\n",
			want:     "{allowed: true}", differ: differences{{Path: "allowed", Want: "true", Got: `"neither, for the outcome is Ungoverned"`}},
		},
		"what no policy is about, not allowed": {
			scenario: "Nobody says anything.\n-- request.yaml --\nuser: {name: anna}\nbase: claim\n-- new.yaml --\nspec: {size: large}\n",
			want:     "{allowed: false}", differ: differences{{Path: "allowed", Want: "false", Got: `"neither, for the outcome is Ungoverned"`}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, files(map[string]string{"t/x.txtar": tc.scenario + "-- want.yaml --\n" + tc.want + "\n"}))["t/x"]
			if got.Err != nil {
				t.Fatal(got.Err)
			}

			for i := range min(len(got.Differences), len(tc.differ)) {
				if tc.differ[i].Got == "*" && got.Differences[i].Got != "" {
					got.Differences[i].Got = "*"
				}
			}

			if diff := cmp.Diff(tc.differ, got.Differences); diff != "" {
				t.Errorf("differences, -want, +got:\n%s", diff)
			}

			if want := map[bool]policytest.Status{true: policytest.Passed, false: policytest.Failed}[tc.differ == nil]; got.Status != want {
				t.Errorf("%s, want %s", got.Status, want)
			}
		})
	}
}

// TestExactlyWhatIsWanted is how the corpus is compared.
func TestExactlyWhatIsWanted(t *testing.T) {
	all := edited + "-- want.yaml --\nfindings:\n- {field: spec.size, verdict: Allowed, rule: Initiate, policy: claim, initiator: hans}\noutcome: Allowed\n"
	got := run(t, files(map[string]string{"t/x.txtar": all, "t/defaults.yaml": "exact: true"}))["t/x"]

	for i := range got.Differences {
		got.Differences[i].Got = ""
	}

	want := []policytest.Difference{{Path: "patched.yaml", Want: "{}"}}
	if diff := cmp.Diff(want, got.Differences); diff != "" {
		t.Errorf("what is patched is not wanted, -want, +got:\n%s", diff)
	}

	part := edited + "-- want.yaml --\nfindings:\n- {field: spec.size, verdict: Allowed, policy: claim, initiator: hans}\noutcome: Allowed\n"
	got = run(t, files(map[string]string{"t/x.txtar": part, "t/defaults.yaml": "exact: true"}))["t/x"]

	if len(got.Differences) != 2 || got.Differences[0] != (policytest.Difference{Path: "findings[0].rule", Got: `"Initiate"`}) {
		t.Errorf("the rule is not wanted: %v", got.Differences)
	}
}

func TestWithoutAWantItIsSaidWhatIsDecided(t *testing.T) {
	got := run(t, files(map[string]string{"t/x.txtar": edited}))["t/x"]

	want := "findings:\n- field: spec.size\n  initiator: hans\n  policy: claim\n  rule: Initiate\n  verdict: Allowed\n"
	if diff := cmp.Diff(want, got.Decided); diff != "" || got.Status != policytest.Failed {
		t.Errorf("%s, -want, +got:\n%s", got.Status, diff)
	}
}
