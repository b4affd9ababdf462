// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// policies finds what is to have policy tests.
var policies = regexp.MustCompile(`(?m)^kind: (AllowancePolicy|UpgradeAllowance)$`)

// TestThePoliciesOfExamplesAreTested by tests beside them, as kubectl kausality test runs them.
func TestThePoliciesOfExamplesAreTested(t *testing.T) {
	const dir = root + "/examples"

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	tested := 0

	for _, e := range entries {
		if e.Name() == "invalid" || !e.IsDir() || !hasPolicies(t, filepath.Join(dir, e.Name())) {
			continue // What is invalid is refused before anybody could be allowed anything by it.
		}

		tested++

		t.Run(e.Name(), func(t *testing.T) {
			opts := policytest.Options{Coverage: true, Clock: time.Now}

			results, err := policytest.Run(t.Context(), policytest.Disk(), []string{filepath.Join(dir, e.Name(), "tests")}, opts)
			if err != nil {
				t.Fatal(err)
			}

			for _, r := range results {
				if r.Status != policytest.Passed {
					t.Errorf("%s: %s\n%s: %v, %v\n%v\n%s", r.Path, r.Reason, r.Status, r.Err, r.Differences, r.Missing, r.Decided)
				}
			}

			if len(results) < 4 {
				t.Errorf("there are %d tests: say what is allowed, and what is not because of what", len(results))
			}

			if c := policytest.CoverageOf(results); c.Items > 0 && c.Percent < 90 {
				t.Errorf("the tests try %d%% of the policies, want at least 90%%: see kubectl kausality test --coverage", c.Percent)
			}
		})
	}

	if tested < 10 {
		t.Errorf("%d examples with policies, want at least 10", tested)
	}
}

// hasPolicies reports whether an example has policies, or windows.
func hasPolicies(t *testing.T, example string) bool {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(example, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if policies.Match(raw) {
			return true
		}
	}

	return false
}
