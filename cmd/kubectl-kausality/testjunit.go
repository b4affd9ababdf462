// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	slashpath "path"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// The elements of JUnit's XML, as Jenkins, GitLab and the actions for GitHub read it.
type (
	junitSuites struct {
		junitCounts

		XMLName xml.Name `xml:"testsuites"`

		Suites []junitSuite `xml:"testsuite"`
	}

	// A suite is a directory.
	junitSuite struct {
		junitCounts

		Cases []junitCase `xml:"testcase"`

		took time.Duration
	}

	junitCounts struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
	}

	junitCase struct {
		Name  string `xml:"name,attr"`
		Class string `xml:"classname,attr"`
		Time  string `xml:"time,attr"`

		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
	}

	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// printJUnit prints results as JUnit's XML: a directory is a suite, a scenario a case.
func printJUnit(out io.Writer, results []policytest.Result, took time.Duration) error {
	doc := junitSuites{junitCounts: junitCounts{Name: "kubectl kausality test", Time: seconds(took)}}
	entries := reportOf(results).Tests

	for i, r := range results {
		suite := doc.suite(slashpath.Dir(r.Path))
		suite.took += r.Took
		suite.Cases = append(suite.Cases, caseOf(r, entries[i]))

		for _, counts := range []*junitCounts{&doc.junitCounts, &suite.junitCounts} {
			counts.count(r.Status)
		}

		suite.Time = seconds(suite.took)
	}

	raw, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode as %s: %w", formatJUnit, err)
	}

	return say(out, "%s%s\n", xml.Header, raw)
}

// suite is that of a directory.
func (d *junitSuites) suite(dir string) *junitSuite {
	i := slices.IndexFunc(d.Suites, func(s junitSuite) bool { return s.Name == dir })
	if i < 0 {
		i = len(d.Suites)
		d.Suites = append(d.Suites, junitSuite{junitCounts: junitCounts{Name: dir}})
	}

	return &d.Suites[i]
}

// count counts a case.
func (c *junitCounts) count(status policytest.Status) {
	c.Tests++

	switch status {
	case policytest.Failed:
		c.Failures++
	case policytest.Unreadable:
		c.Errors++
	case policytest.Passed, policytest.Updated:
	}
}

// caseOf is one scenario. Its class is its directory, as those of Java's classes are.
func caseOf(r policytest.Result, e testEntry) junitCase {
	out := junitCase{
		Name:  slashpath.Base(r.Name),
		Class: strings.ReplaceAll(strings.Trim(slashpath.Dir(r.Name), "./"), "/", "."),
		Time:  seconds(r.Took),
	}

	if out.Class == "" {
		out.Class = "."
	}

	problem := &junitProblem{Type: string(r.Status), Message: cmp.Or(r.Reason, r.Path), Text: e.details()}

	switch r.Status {
	case policytest.Failed:
		out.Failure = problem
	case policytest.Unreadable:
		out.Error = problem
	case policytest.Passed, policytest.Updated:
	}

	return out
}

// seconds are those of a duration, as JUnit's XML has them.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
