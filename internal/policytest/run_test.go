// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

func TestResultsAreInTheOrderOfNames(t *testing.T) {
	more := map[string]string{}

	var want []string

	for i := range 40 {
		name := fmt.Sprintf("t/%02d", i)
		more[name+".txtar"] = edited + "-- want.yaml --\nallowed: true\n"

		if i%2 == 1 {
			want = append(want, name)
		}
	}

	opts := policytest.Options{Clock: time.Now, Select: regexp.MustCompile("[13579]$")}

	results, err := policytest.Run(t.Context(), files(more), []string{"t"}, opts)
	if err != nil {
		t.Fatal(err)
	}

	got := make([]string, 0, len(results))
	for _, r := range results {
		got = append(got, r.Name)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Run: -want, +got:\n%s", diff)
	}

	opts.Select = regexp.MustCompile("none")
	if _, err := policytest.Run(t.Context(), files(more), []string{"t"}, opts); !errors.Is(err, policytest.ErrNoneSelected) {
		t.Errorf("Run where none is selected: %v", err)
	}

	ended, end := context.WithCancel(t.Context())
	end()

	if _, err := policytest.Run(ended, files(more), []string{"t"}, policytest.Options{Clock: time.Now}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run that is interrupted: %v", err)
	}
}

// TestWhatIsInShadowModeIsTestedAsItWillBe where that is asked for, a condition of it as well.
func TestWhatIsInShadowModeIsTestedAsItWillBe(t *testing.T) {
	const unready = `apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: claim}
spec:
  enforcementMode: Shadow
  match:
    kind: DatabaseClaim
    fields: [spec.size]
    matchConditions: [{name: not-huge, expression: "object.spec.size != 'huge'", enforcementMode: Shadow}]
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]
`

	in := files(map[string]string{
		"policies.yaml": unready, "t/size.txtar": edited + "-- want.yaml --\nallowed: true\n",
		"t/huge.txtar":        strings.Replace(edited, "large", "huge", 1) + "-- want.yaml --\nallowed: false\nfindings: [{lacks: [{what: CEL}]}]\n",
		"t/own/defaults.yaml": "enforce: true\n", "t/own/size.txtar": strings.Replace(edited, "../policies", "../../policies", 1) + "-- want.yaml --\nallowed: true\n",
	})

	for enforce, want := range map[bool]struct {
		statuses []policytest.Status
		items    int
	}{
		false: {[]policytest.Status{policytest.Failed, policytest.Passed, policytest.Failed}, 4},
		true:  {[]policytest.Status{policytest.Passed, policytest.Passed, policytest.Passed}, 4},
	} {
		results, err := policytest.Run(t.Context(), in, []string{"t"}, policytest.Options{Clock: time.Now, Enforce: enforce, Coverage: true})
		if err != nil {
			t.Fatal(err)
		}

		got := make([]policytest.Status, len(results))
		for i, r := range results {
			got[i] = r.Status
		}

		if diff := cmp.Diff(want.statuses, got); diff != "" {
			t.Errorf("enforce %t: -want, +got:\n%s", enforce, diff)
		}

		if items := policytest.CoverageOf(results).Items; items != want.items {
			t.Errorf("enforce %t: %d items are covered or not, want %d", enforce, items, want.items)
		}
	}
}

// TestUpdatingWritesWhatIsDecided and leaves alone what is decided as it wants.
func TestUpdatingWritesWhatIsDecided(t *testing.T) {
	cases := map[string]struct {
		reason         string
		before, after  string
		status, second policytest.Status
		defaults       string
	}{
		"new": {
			reason: "All of it where there was nothing.", before: edited, status: policytest.Updated,
			after: edited + "-- want.yaml --\nfindings:\n- field: spec.size\n  initiator: hans\n  policy: claim\n  rule: Initiate\n  verdict: Allowed\n",
		},
		"short": {
			reason: "What is short stays so.", before: edited + "-- want.yaml --\n{allowed: false, findings: [{policy: xr}], denied: never}\n", status: policytest.Updated,
			after: edited + "-- want.yaml --\nallowed: true\ndenied: \"\"\nfindings:\n- policy: claim\n",
		},
		"right": {
			reason: "What is as it wants is left alone.", before: edited + "-- want.yaml --\n{allowed: true} # Of course.\n", status: policytest.Passed,
			after: edited + "-- want.yaml --\n{allowed: true} # Of course.\n",
		},
		"neither": {
			reason: "What is neither allowed nor not says so.", status: policytest.Updated,
			before: "Nobody says anything.\n-- request.yaml --\nbase: claim\n-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: true\n",
			after:  "Nobody says anything.\n-- request.yaml --\nbase: claim\n-- new.yaml --\nspec: {size: large}\n-- want.yaml --\noutcome: Ungoverned\n",
		},
		"unpatched": {
			reason: "That nothing is patched is said where something was.", status: policytest.Updated,
			before: "Nothing changes.\n-- request.yaml --\nbase: claim\n-- want.yaml --\noutcome: Unchanged\n-- patched.yaml --\nspec: {size: x}\n",
			after:  "Nothing changes.\n-- request.yaml --\nbase: claim\n-- want.yaml --\noutcome: Unchanged\n-- patched.yaml --\n{}\n",
		},
		"exact": {
			reason: "All of it where all is wanted.", before: "Nothing changes.\n-- request.yaml --\nbase: claim\n-- want.yaml --\ndenied: x\n-- patched.yaml --\nspec: {}\n",
			after: "Nothing changes.\n-- request.yaml --\nbase: claim\n-- want.yaml --\noutcome: Unchanged\n", status: policytest.Updated, defaults: "exact: true\n",
		},
		"unreadable": {
			reason: "What cannot be read is left alone.", before: edited + "-- want.yaml --\nallowde: true\n", after: edited + "-- want.yaml --\nallowde: true\n",
			status: policytest.Unreadable, second: policytest.Unreadable,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, files(map[string]string{"t/x.txtar": tc.before, "t/defaults.yaml": tc.defaults}))

			second := policytest.Passed
			if tc.second != "" {
				second = tc.second
			}

			for _, want := range []policytest.Status{tc.status, second} {
				results, err := policytest.Run(t.Context(), policytest.Disk(), []string{filepath.Join(dir, "t")}, policytest.Options{Update: true, Clock: time.Now})
				if err != nil {
					t.Fatal(err)
				}

				if results[0].Status != want {
					t.Errorf("%s\n%s: %v, want %s", tc.reason, results[0].Status, results[0].Err, want)
				}
			}

			got, err := os.ReadFile(filepath.Join(dir, "t", "x.txtar"))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.after, string(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// write writes files below a directory of the disk.
func write(tb testing.TB, dir string, in fstest.MapFS) {
	tb.Helper()

	for name, file := range in {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			tb.Fatal(err)
		}

		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkPolicyTests reads and decides 500 scenarios of one set of policies, in ten
// directories, each change by somebody else.
func BenchmarkPolicyTests(b *testing.B) {
	const scenarios = 500

	dir := b.TempDir()
	more := map[string]string{"t/defaults.yaml": "base: claim\npolicies: [../policies.yaml]\n"}

	for i := range scenarios {
		allowed := i%2 == 0
		group := map[bool]string{true: "platform-team", false: "app-team"}[allowed]
		more[fmt.Sprintf("t/%02d/%03d.txtar", i%10, i)] = fmt.Sprintf(
			"Case %d.\n-- request.yaml --\nuser: {name: user-%d, groups: [%s]}\n-- new.yaml --\nspec: {size: size-%d}\n"+
				"-- want.yaml --\nallowed: %t\nfindings: [{field: spec.size}]\n", i, i, group, i, allowed)
	}

	write(b, dir, files(more))
	b.ReportAllocs()

	for b.Loop() {
		results, err := policytest.Run(b.Context(), policytest.Disk(), []string{filepath.Join(dir, "t")}, policytest.Options{Clock: time.Now})
		if err != nil {
			b.Fatal(err)
		}

		if len(results) != scenarios || slices.ContainsFunc(results, func(r policytest.Result) bool { return r.Status != policytest.Passed }) {
			b.Fatalf("%d results, not all of them passed", len(results))
		}
	}
}
