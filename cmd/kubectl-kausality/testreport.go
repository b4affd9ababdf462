// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// testReport is what test prints for programs.
type testReport struct {
	header `json:",inline"`

	// Passed, Failed, Unreadable and Updated are how many tests there are of each status.
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`
	Unreadable int `json:"unreadable"`
	Updated    int `json:"updated"`
	// Tests are all that ran, by path.
	Tests []testEntry `json:"tests"`
	// Coverage is there where it was asked for.
	Coverage *policytest.Coverage `json:"coverage,omitempty"`
}

// testEntry is one test.
type testEntry struct {
	// Path of the scenario's file.
	Path string `json:"path"`
	// Reason why things are to be decided so, as the scenario says.
	Reason string `json:"reason"`
	// Status: Passed, Failed, Unreadable or, with --update, Updated.
	Status policytest.Status `json:"status"`
	// Differences between what is wanted and what is decided.
	Differences []policytest.Difference `json:"differences,omitempty"`
	// Missing says what it would take to allow each change that is not allowed, where the test failed.
	Missing []string `json:"missing,omitempty"`
	// Decided is what is decided, as YAML, where the scenario does not say what is wanted.
	Decided string `json:"decided,omitempty"`
	// Error says why it is Unreadable, a line for each thing that is wrong.
	Error string `json:"error,omitempty"`
}

func reportOf(results []policytest.Result) testReport {
	out := testReport{header: header{outputVersion, "TestReport"}, Tests: make([]testEntry, len(results))}

	for i, r := range results {
		e := testEntry{
			Path: r.Path, Reason: r.Reason, Status: r.Status, Differences: r.Differences, Missing: r.Missing, Decided: r.Decided,
		}

		switch r.Status {
		case policytest.Passed:
			out.Passed++
		case policytest.Failed:
			out.Failed++
		case policytest.Updated:
			out.Updated++
		case policytest.Unreadable:
			out.Unreadable++
			e.Error = r.Err.Error()
		}

		out.Tests[i] = e
	}

	return out
}

// err is what the command ends with, where so many percent of the policies are to be tried.
func (r testReport) err(minCoverage int) error {
	switch {
	case r.Unreadable > 0:
		return fmt.Errorf("cannot read %d of %d tests", r.Unreadable, len(r.Tests))
	case r.Failed > 0:
		return failedTestsError{r.Failed, len(r.Tests)}
	case r.Coverage != nil && r.Coverage.Percent < minCoverage:
		return lowCoverageError{r.Coverage.Percent, minCoverage}
	default:
		return nil
	}
}

// text writes a report for people.
func (r testReport) text(took time.Duration, verbose bool) string {
	var out strings.Builder

	for _, e := range r.Tests {
		if e.Status != policytest.Passed || verbose {
			e.write(&out)
		}
	}

	if r.Coverage != nil {
		out.WriteString(coverageText(*r.Coverage))
	}

	fmt.Fprintf(&out, "%s in %.2fs\n", r.summary(), took.Seconds())

	return out.String()
}

// summary says how many there are of each status.
func (r testReport) summary() string {
	out := []string{fmt.Sprintf("%d passed", r.Passed)}

	for _, n := range []struct {
		count int
		what  string
	}{{r.Failed, "failed"}, {r.Unreadable, "unreadable"}, {r.Updated, "updated"}} {
		if n.count > 0 {
			out = append(out, fmt.Sprintf("%d %s", n.count, n.what))
		}
	}

	return strings.Join(out, ", ")
}

// write writes one test, and what is below it indented.
func (e testEntry) write(out *strings.Builder) {
	word := map[policytest.Status]string{
		policytest.Passed: "PASS", policytest.Failed: "FAIL", policytest.Unreadable: "ERROR", policytest.Updated: "UPDATED",
	}[e.Status]

	fmt.Fprintf(out, "%-5s  %s", word, e.Path)

	if e.Reason != "" {
		fmt.Fprintf(out, ": %s", e.Reason)
	}

	fmt.Fprintln(out)

	for line := range strings.Lines(e.details()) {
		fmt.Fprintf(out, "       %s\n", strings.TrimRight(line, "\n"))
	}
}

// details say what is wrong with a test: what is wanted (-) and what is decided (+), and what is missing.
func (e testEntry) details() string {
	var out strings.Builder

	for _, d := range e.Differences {
		for _, side := range []struct{ sign, value string }{{"-", d.Want}, {"+", d.Got}} {
			if side.value != "" {
				fmt.Fprintf(&out, "%s %s: %s\n", side.sign, d.Path, side.value)
			}
		}
	}

	for _, text := range e.Missing {
		fmt.Fprintln(&out, text)
	}

	if e.Decided != "" {
		fmt.Fprintf(&out, "there is no want.yaml; this is decided:\n%s", e.Decided)
	}

	if e.Error != "" {
		fmt.Fprintln(&out, e.Error)
	}

	return out.String()
}
