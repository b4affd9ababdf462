// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/linter"
	"github.com/kausality-io/kausality-crossplane/internal/manifest"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var updateLint = flag.Bool("update-lint", false, "write testdata/lint/want.* anew")

// Where the repository has what is linted.
const (
	examplesDir = "../../examples"
	// databaseCRDs are of managed resources that examples/postgres is made of.
	databaseCRDs = "testdata/crds"
)

// linted lints files, as of the day on which the windows of the examples are open.
func linted(t *testing.T, files ...string) []linter.Finding {
	t.Helper()

	objects, err := readManifests(files, nil)
	if err != nil {
		t.Fatal(err)
	}

	return lintedObjects(t, objects)
}

func lintedObjects(t *testing.T, objects []*manifest.Object) []linter.Finding {
	t.Helper()

	report, err := linter.Lint(t.Context(), objects, linter.Options{
		Settings: request.Settings{Crossplane: "system:serviceaccount:crossplane-system:crossplane"},
		Now:      time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}

	return report.Findings
}

// said is a finding as the API server says it.
func said(f linter.Finding) string { return f.Field + ": " + f.Message }

// TestWhatIsInvalidIsFoundForTheReasonItStates finds offline what the API server refuses:
// the reasons are those that test/examples has it refuse these for.
func TestWhatIsInvalidIsFoundForTheReasonItStates(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(filepath.Join(examplesDir, "invalid", "*.yaml"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d documents, error %v", len(files), err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()

			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			// Where in an expression it is, is said in fewer words.
			want, found := strings.ReplaceAll(fixture.Refusal(raw), "ERROR: <input>:", ""), false

			var (
				others []string
				fields []string // Those of which it is said.
			)

			findings := linted(t, file)
			for _, f := range findings {
				if want != "" && strings.Contains(said(f), want) {
					found, fields = true, append(fields, f.Field)
				}
			}

			for _, f := range findings {
				if f.Severity != typecheck.Error {
					continue
				}

				// Nothing is said of what is around the mistake.
				if !strings.Contains(said(f), want) && !slices.Contains(fields, f.Field) {
					others = append(others, said(f))
				}

				if strings.HasPrefix(string(bytes.Split(raw, []byte("\n"))[f.Position.Line-1]), "#") {
					t.Errorf("it is on line %d, a comment", f.Position.Line)
				}
			}

			if !found || len(others) > 0 {
				t.Errorf("found: %t, for: %s\nbesides: %q", found, want, others)
			}
		})
	}
}

func TestTheExamplesHaveNoErrors(t *testing.T) {
	t.Parallel()

	// Stages of the same Enforcement, of which one is applied after the other.
	staged := []string{"audit-to-deny"}

	entries, err := os.ReadDir(examplesDir)
	if err != nil {
		t.Fatal(err)
	}

	checked := 0

	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == "invalid" {
			continue
		}

		checked++

		for _, f := range linted(t, filepath.Join(examplesDir, entry.Name()), databaseCRDs) {
			stage := f.Rule == typecheck.DuplicateObject && slices.Contains(staged, entry.Name())
			if f.Severity == typecheck.Error || f.Severity == typecheck.Warning && !stage {
				t.Errorf("%s:%d: %s: %s [%s]", f.Object.File, f.Position.Line, f.Severity, said(f), f.Rule)
			}
		}
	}

	if checked < 10 {
		t.Errorf("%d examples, want at least 10", checked)
	}
}

// TestWhatTheDocsShowHasNoErrors lints each YAML block with a policy, by itself.
func TestWhatTheDocsShowHasNoErrors(t *testing.T) {
	t.Parallel()

	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}

	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?\n)```\n")
	checked := 0

	for _, page := range append(pages, "../../README.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, block := range blocks.FindAllStringSubmatch(string(raw), -1) {
			if !strings.Contains(block[1], "apiVersion: kausality.io/") {
				continue
			}

			objects, err := manifest.Read(page, []byte(block[1]))
			if err != nil {
				t.Errorf("%v\n%s", err, block[1])
			}

			checked++

			for _, f := range lintedObjects(t, objects) {
				if f.Severity == typecheck.Error || f.Severity == typecheck.Warning {
					t.Errorf("%s: %s: %s [%s] of\n%s", page, f.Severity, said(f), f.Rule, block[1])
				}
			}
		}
	}

	if checked < 30 {
		t.Errorf("%d blocks, want at least 30", checked)
	}
}

// lintOf runs lint on the files of testdata/lint, and returns what it prints.
func lintOf(t *testing.T, change func(*lintOptions)) (string, error) {
	t.Helper()

	opts := lintOptions{
		files: []string{"testdata/lint", databaseCRDs}, severity: string(typecheck.Note),
		crossplane: "system:serviceaccount:crossplane-system:crossplane",
		now:        time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(&opts)
	}

	var out bytes.Buffer

	err := runLint(t.Context(), &out, opts)

	return out.String(), err
}

func TestLintPrintsWhatItFinds(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*lintOptions){
		"want.txt":     func(o *lintOptions) { o.verbose = true },
		"want.yml.txt": func(o *lintOptions) { o.format = formatYAML },
		"want.sarif":   func(o *lintOptions) { o.format = formatSARIF },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := lintOf(t, change)
			if !errors.Is(err, errFinding) {
				t.Errorf("error %v", err)
			}

			file := filepath.Join("testdata", "lint", name)

			if *updateLint {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestLintPrintsTheSameEachTime also where the order of maps is another one.
func TestLintPrintsTheSameEachTime(t *testing.T) {
	t.Parallel()

	all := func(o *lintOptions) { o.files = []string{examplesDir, "testdata/lint", databaseCRDs} }
	want, _ := lintOf(t, all)

	for range 5 {
		if got, _ := lintOf(t, all); got != want {
			t.Fatalf("-first, +later:\n%s", cmp.Diff(want, got))
		}
	}
}

// TestSARIFIsValid by the schema of SARIF 2.1.0, and has what code scanning asks for.
func TestSARIFIsValid(t *testing.T) {
	t.Parallel()

	got, _ := lintOf(t, func(o *lintOptions) { o.format = formatSARIF })

	report, err := sarif.FromString(got)
	if err != nil {
		t.Fatal(err)
	}

	if err := report.Validate(); err != nil {
		t.Error(err)
	}

	rules := report.Runs[0].Tool.Driver.Rules
	if len(rules) != len(typecheck.Rules()) {
		t.Errorf("%d rules, want %d", len(rules), len(typecheck.Rules()))
	}

	for _, r := range report.Runs[0].Results {
		place := r.Locations[0].PhysicalLocation

		if *rules[r.RuleIndex].ID != *r.RuleID || rules[r.RuleIndex].DefaultConfiguration.Level != r.Level {
			t.Errorf("result of rule %s, level %s: it names rule %s", *r.RuleID, r.Level, *rules[r.RuleIndex].ID)
		}

		if *place.ArtifactLocation.URI == "" || *place.Region.StartLine < 1 || *place.Region.StartColumn < 1 || len(r.PartialFingerprints) != 1 {
			t.Errorf("result of rule %s has no place: %+v", *r.RuleID, place.Region)
		}
	}
}

func TestLintEndsAsItsFindingsAsk(t *testing.T) {
	t.Parallel()

	const (
		good = `{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: p},
  spec: {match: {kind: ConfigMap, fields: [data]}, subjects: [{kind: Group, name: g, mayInitiate: true}], allow: [{kind: Pod, mutations: [spec]}]}}`
		noted  = `{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: p}, spec: {match: {kind: Other, fields: [data]}, allow: []}}`
		warned = `{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: p}, spec: {match: {kind: ConfigMap, fields: [date]}, allow: []}}`
		wrong  = `{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, metadata: {name: p}, spec: {match: {kind: ConfigMap, fields: ["d["]}, allow: []}}`
	)

	cases := map[string]struct {
		reason string
		text   string
		change func(*lintOptions)
		code   int
		want   string
		not    string
	}{
		"Good":     {reason: "Nothing is wrong.", text: good, want: "0 errors, 0 warnings, 0 notes; 1 objects checked, 0 of other kinds ignored"},
		"Others":   {reason: "Other kinds are ignored.", text: "kind: A\n---\n- x\n---\n" + good, change: func(o *lintOptions) { o.verbose = true }, want: "stdin: ignored: no object\n"},
		"Note":     {reason: "A note is no failure, strict or not.", text: noted, change: func(o *lintOptions) { o.strict = true }, want: ": note: "},
		"Warning":  {reason: "A warning is none.", text: warned, want: "stdin:1:122: warning: AllowancePolicy \"p\": spec.match.fields[0]: v1, kind ConfigMap: date: there is no such field; did you mean data? [unknown-path]"},
		"Strict":   {reason: "With strict it is one.", text: warned, change: func(o *lintOptions) { o.strict = true }, code: exitFinding, want: ": warning: "},
		"Error":    {reason: "An error is one.", text: wrong, code: exitFinding, want: ": error: "},
		"Silent":   {reason: "What is not told counts.", text: warned, change: func(o *lintOptions) { o.strict, o.severity = true, "error" }, code: exitFinding, not: ": warning: "},
		"Severity": {reason: "Less is told where that is asked for.", text: noted, change: func(o *lintOptions) { o.severity = "warning" }, not: ": note: "},
		"Unread":   {reason: "What cannot be read is a failure, also beside what can be.", text: "kind: A\n  b: c\n---\n" + wrong, code: exitError, want: ": error: "},
		"NoFile":   {reason: "So is a file that is not there.", text: good, change: func(o *lintOptions) { o.files = append(o.files, "testdata/none") }, code: exitError, want: "1 objects checked"},
		"NoFiles":  {reason: "Files have to be named.", change: func(o *lintOptions) { o.files = nil }, code: exitUsage},
		"Format":   {reason: "There are so many formats.", text: good, change: func(o *lintOptions) { o.format = "name" }, code: exitUsage},
		"Degree":   {reason: "There are three severities.", text: good, change: func(o *lintOptions) { o.severity = "fatal" }, code: exitUsage},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := lintOf(t, func(o *lintOptions) {
				o.files, o.in = []string{stdinName}, strings.NewReader(tc.text)
				if tc.change != nil {
					tc.change(o)
				}
			})

			if exitCode(err) != tc.code {
				t.Errorf("%s\nexit code %d (%v), want %d", tc.reason, exitCode(err), err, tc.code)
			}

			if !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("%s\nprinted:\n%s\nwant %q, and not %q", tc.reason, got, tc.want, tc.not)
			}
		})
	}
}

func TestFilesAreReadOnceEachAndInOrder(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	for name, text := range map[string]string{
		"b.yaml": "kind: B", "a.yml": "kind: A", "sub/c.json": `{"kind": "C"}`, "sub/values.txt": "kind: No", ".github/d.yaml": "kind: No", "named.tpl": "kind: D",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	objects, err := readManifests([]string{filepath.Join(dir, "named.tpl"), dir, dir + "/./b.yaml", stdinName}, strings.NewReader("kind: E"))
	if err != nil {
		t.Fatal(err)
	}

	got := make([]string, 0, len(objects))
	for _, o := range objects {
		got = append(got, fmt.Sprint(o.Content["kind"]))
	}

	if diff := cmp.Diff([]string{"D", "A", "B", "C", "E"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestLintIsCompleted(t *testing.T) {
	t.Parallel()

	for args, want := range map[string]string{
		"lint --filename ": "yaml\nyml\njson\n:8\n", "lint ": "yaml\nyml\njson\n:8\n",
		"lint --severity ": "note\nwarning\nerror\n:4\n", "lint --output ": "json\nyaml\njsonpath=\nsarif\n:4\n",
	} {
		var out bytes.Buffer

		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)

		if err := run(t.Context(), cmd, append([]string{"kubectl-kausality", "__complete"}, strings.Split(args, " ")...)); err != nil {
			t.Error(err)
		}

		if out.String() != want {
			t.Errorf("%q: %q, want %q", args, out.String(), want)
		}
	}
}

// BenchmarkLint lints a hundred policies with the definitions of their kinds.
func BenchmarkLint(b *testing.B) {
	raw, err := os.ReadFile(filepath.Join(examplesDir, "claim-with-ticket", "policies.yaml"))
	if err != nil {
		b.Fatal(err)
	}

	var text strings.Builder

	for i := range 20 {
		fmt.Fprintf(&text, "---\n%s\n", regexp.MustCompile(`(?m)^ {2}name: (\S+)`).ReplaceAllString(string(raw), fmt.Sprintf("  name: $1-%d", i)))
	}

	for b.Loop() {
		objects, err := readManifests([]string{stdinName, filepath.Join(examplesDir, "claim-with-ticket", "xrd.yaml"), databaseCRDs}, strings.NewReader(text.String()))
		if err != nil {
			b.Fatal(err)
		}

		report, err := linter.Lint(b.Context(), objects, linter.Options{})
		if err != nil || len(report.Objects) != 100 {
			b.Fatalf("%d policies, error %v", len(report.Objects), err)
		}
	}
}
