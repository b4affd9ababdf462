// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tested are scenarios of which some pass.
func tested(more map[string]string) fstest.MapFS {
	const ask = "-- request.yaml --\nuser: {name: anna, groups: [app-team]}\nbase: widget\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {size: large}\n"

	out := fstest.MapFS{}

	for name, text := range map[string]string{
		"policies.yaml": "apiVersion: kausality.io/v1alpha1\nkind: AllowancePolicy\nmetadata: {name: widgets}\nspec:\n  match: {kind: Widget, fields: [spec.size]}\n" +
			"  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]\n  allow: []\n",
		"t/base/widget.yaml": "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w, uid: u, generation: 1}\nspec: {size: small}\n",
		"t/fails.txtar":      "Anna may change the size.\n" + ask + "-- want.yaml --\nallowed: true\nfindings: [{verdict: Allowed}]\n",
		"t/none.txtar":       "What is decided?\n" + ask,
		"t/passes.txtar":     "Anna may not change the size.\n" + ask + "-- want.yaml --\nallowed: false\n",
		"t/sub/broken.txtar": "It is <broken> & \"wrong\".\n-- request.yaml --\nbsae: widget\n",
		"t/sub/passes.txtar": "Nor here.\n" + strings.ReplaceAll(ask, "../policies", "../../policies") + "-- want.yaml --\nallowed: false\n",
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}

	for name, text := range more {
		out[name] = &fstest.MapFile{Data: []byte(text)}
		if text == "" {
			delete(out, name)
		}
	}

	return out
}

func TestPolicyTestsAreReported(t *testing.T) {
	const failing = `FAIL   t/fails.txtar: Anna may change the size.
       - allowed: true
       + allowed: false
       - findings[0].verdict: "Allowed"
       + findings[0].verdict: "Unallowed"
       spec.size: policy "widgets": only Group platform-team may, not anna
FAIL   t/none.txtar: What is decided?
       there is no want.yaml; this is decided:
       findings:
       - field: spec.size
         lacks:
         - policy: widgets
           text: 'policy "widgets": only Group platform-team may, not anna'
           what: Subject
         verdict: Unallowed
       warnings:
       - 'Widget "w": spec.size is saved but will not be applied: policy "widgets": only
         Group platform-team may, not anna'
`

	cases := map[string]struct {
		reason string
		more   map[string]string
		opts   testOptions
		dirs   []string
		code   int
		err    string
		want   string
	}{
		"people": {
			reason: "What fails is shown, and what cannot be read is a failure.", code: exitError, err: "cannot read 1 of 5 tests",
			want: failing + "ERROR  t/sub/broken.txtar: It is <broken> & \"wrong\".\n       t/sub/broken.txtar:3: request.yaml: bsae: unknown field\n" +
				"2 passed, 2 failed, 1 unreadable in 1.00s\n",
		},
		"finding": {
			reason: "That tests fail is a finding.", more: map[string]string{"t/sub/broken.txtar": ""}, code: exitFinding, err: "2 of 4 tests failed",
			want: failing + "2 passed, 2 failed in 1.00s\n",
		},
		"verbose": {
			reason: "What passes is listed, too, if one likes.", opts: testOptions{verbose: true, pattern: "passes"},
			want: "PASS   t/passes.txtar: Anna may not change the size.\nPASS   t/sub/passes.txtar: Nor here.\n2 passed in 1.00s\n",
		},
		"quiet": {reason: "Where all pass there is a line.", opts: testOptions{pattern: "passes$"}, want: "2 passed in 1.00s\n"},
		"YAML": {
			reason: "Programs read the same.", opts: testOptions{pattern: "(fails|broken|sub/passes)$", outputOptions: outputOptions{format: formatYAML}}, code: exitError,
			err: "cannot read 1 of 3 tests",
			want: `apiVersion: cli.kausality.io/v1alpha1
failed: 1
kind: TestReport
passed: 1
tests:
- differences:
  - got: "false"
    path: allowed
    want: "true"
  - got: '"Unallowed"'
    path: findings[0].verdict
    want: '"Allowed"'
  missing:
  - 'spec.size: policy "widgets": only Group platform-team may, not anna'
  path: t/fails.txtar
  reason: Anna may change the size.
  status: Failed
- error: 't/sub/broken.txtar:3: request.yaml: bsae: unknown field'
  path: t/sub/broken.txtar
  reason: It is <broken> & "wrong".
  status: Unreadable
- path: t/sub/passes.txtar
  reason: Nor here.
  status: Passed
unreadable: 1
updated: 0
`,
		},
		"path": {
			reason: "And templates take of it.", opts: testOptions{outputOptions: outputOptions{format: "jsonpath={.passed} {.failed}"}}, code: exitError,
			err: "cannot read 1 of 5 tests", want: "2 2",
		},
		"coverage": {
			reason: "What no test has tried is said.", opts: testOptions{pattern: "passes$", coverage: true},
			want: `TEST   policies.yaml:1: AllowancePolicy "widgets"
       spec (widgets): never allowed
       spec.match.fields[0] (spec.size): never allowed
       spec.subjects[0] (Group platform-team): never allowed
coverage: 0%, 0 of 3 items of 1 policies
2 passed in 1.00s
`,
		},
		"enough coverage": {
			reason: "What was tried is not listed.", opts: testOptions{pattern: "(passes|hans)$", minCoverage: 100},
			more: map[string]string{"t/hans.txtar": "Hans may.\n-- request.yaml --\nuser: {name: hans, groups: [platform-team]}\nbase: widget\npolicies: [../policies.yaml]\n" +
				"-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: true\n"},
			want: "coverage: 100%, 3 of 3 items of 1 policies\n3 passed in 1.00s\n",
		},
		"little coverage": {
			reason: "Too little of it is a finding, and programs read the same.", code: exitFinding, err: "coverage is 0%, and is to be at least 1%",
			opts: testOptions{pattern: "t/passes$", minCoverage: 1, outputOptions: outputOptions{format: formatYAML}},
			want: `apiVersion: cli.kausality.io/v1alpha1
coverage:
  covered: 0
  items: 3
  percent: 0
  policies:
  - items:
    - allowed: false
      covered: false
      field: spec
      refused: true
      text: widgets
    - allowed: false
      covered: false
      field: spec.match.fields[0]
      refused: true
      text: spec.size
    - allowed: false
      covered: false
      field: spec.subjects[0]
      refused: true
      text: Group platform-team
    name: widgets
    place: policies.yaml:1
failed: 0
kind: TestReport
passed: 1
tests:
- path: t/passes.txtar
  reason: Anna may not change the size.
  status: Passed
unreadable: 0
updated: 0
`,
		},
		"impossible coverage": {
			reason: "More than all is an error in the command line.", opts: testOptions{minCoverage: 101}, code: exitUsage,
			err: "cannot have a coverage of 101%: give a percentage, from 0 to 100",
		},
		"no pattern": {
			reason: "A pattern that does not parse is an error in the command line.", opts: testOptions{pattern: "("}, code: exitUsage,
			err: "cannot select tests: error parsing regexp: missing closing ): `(`",
		},
		"none selected": {
			reason: "So is one that selects nothing.", opts: testOptions{pattern: "nothing"}, code: exitUsage,
			err: `cannot select tests by "nothing": no scenario has a name that matches`,
		},
		"no format": {
			reason: "So is a format there is not.", opts: testOptions{outputOptions: outputOptions{format: "xml"}}, code: exitUsage,
			err: `cannot print as "xml": give json, yaml or jsonpath=TEMPLATE, or junit`,
		},
		"no tests": {
			reason: "That nothing is tested is a failure.", dirs: []string{"t", "t/base"}, code: exitError,
			err: `cannot test directory "t/base": there is no scenario in it, and none below it: that is a file *.txtar`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer

			tc.opts.clock = clockOf(time.Second)
			if tc.dirs == nil {
				tc.dirs = []string{"t"}
			}

			err := tc.opts.run(t.Context(), &out, tested(tc.more), tc.dirs)
			if code := exitCode(err); code != tc.code || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Errorf("%s\nexit code %d, %v; want %d, %s", tc.reason, code, err, tc.code, tc.err)
			}

			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// clockOf is a clock by which a whole run takes some time, however many tests there are.
func clockOf(took time.Duration) func() time.Time {
	began := time.Unix(0, 0)
	looked := false

	return func() time.Time {
		if !looked {
			looked = true

			return began
		}

		return began.Add(took)
	}
}

// TestCISystemsReadTheResults as JUnit's XML, in which nothing of what people write does harm.
func TestCISystemsReadTheResults(t *testing.T) {
	var out bytes.Buffer

	opts := testOptions{outputOptions: outputOptions{format: formatJUnit}, pattern: "^t/(fails|passes|sub/broken)$", clock: clockOf(1500 * time.Millisecond)}
	if err := opts.run(t.Context(), &out, tested(nil), []string{"t"}); exitCode(err) != exitError {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}

	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kubectl kausality test" tests="3" failures="1" errors="1" skipped="0" time="1.500">
  <testsuite name="t" tests="2" failures="1" errors="0" skipped="0" time="0.000">
    <testcase name="fails" classname="t" time="0.000">
      <failure message="Anna may change the size." type="Failed">- allowed: true&#xA;+ allowed: false&#xA;- findings[0].verdict: &#34;Allowed&#34;&#xA;+ findings[0].verdict: &#34;Unallowed&#34;&#xA;` +
		`spec.size: policy &#34;widgets&#34;: only Group platform-team may, not anna&#xA;</failure>
    </testcase>
    <testcase name="passes" classname="t" time="0.000"></testcase>
  </testsuite>
  <testsuite name="t/sub" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <testcase name="broken" classname="t.sub" time="0.000">
      <error message="It is &lt;broken&gt; &amp; &#34;wrong&#34;." type="Unreadable">t/sub/broken.txtar:3: request.yaml: bsae: unknown field&#xA;</error>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("JUnit, -want, +got:\n%s", diff)
	}

	var doc junitSuites
	if err := xml.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Suites) != 2 || doc.Suites[0].Cases[0].Failure == nil {
		t.Errorf("it is not read back: %v, %+v", err, doc)
	}
}

// TestTheCommandTestsDirectories of the disk, and writes into them.
func TestTheCommandTestsDirectories(t *testing.T) {
	dir := t.TempDir()

	for name, file := range tested(map[string]string{"t/sub/broken.txtar": ""}) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	t.Chdir(dir)

	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{args: "test ./t/", code: exitFinding, want: "2 passed, 2 failed in "},
		{args: "test t/sub t", code: exitFinding, want: "2 passed, 2 failed in "},
		{args: "test t --update", want: "UPDATED  t/none.txtar: What is decided?\n2 passed, 2 updated in "},
		{args: "test t", want: "4 passed in "},
		{args: "test", code: exitUsage},
		{args: "test none", code: exitError},
		{args: "__complete test t", want: ":16\n"},
		{args: "__complete test t -o j", want: "json\nyaml\njsonpath=\njunit\n:4\n"},
	} {
		var out bytes.Buffer

		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})

		err := run(t.Context(), cmd, append([]string{"kubectl-kausality"}, strings.Fields(tc.args)...))
		if code := exitCode(err); code != tc.code || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: exit code %d, %v, want %d:\n%s", tc.args, code, err, tc.code, out.String())
		}
	}
}

// TestTheWorkflowRunsCommandsThatThereAre with flags that they have.
func TestTheWorkflowRunsCommandsThatThereAre(t *testing.T) {
	raw, err := os.ReadFile("../../docs/workflows/policy-tests.yaml")
	if err != nil {
		t.Fatal(err)
	}

	tested := 0

	for _, line := range regexp.MustCompile(`kubectl kausality ([a-z]+) ([^|>\n]+)`).FindAllStringSubmatch(string(raw), -1) {
		cmd, _, err := root().Find([]string{line[1]})
		if err != nil || cmd.Name() != line[1] {
			continue
		}

		tested++

		if err := cmd.ParseFlags(strings.Fields(line[2])); err != nil {
			t.Errorf("%s: %v", line[0], err)
		}

		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line[0], err)
		}
	}

	if tested < 2 {
		t.Errorf("the workflow runs %d of the commands that there are, want at least 2", tested)
	}
}
