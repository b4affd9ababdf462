// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

// lint is what actionlint says of a workflow, a line for each thing that is wrong. It knows what
// syntax GitHub takes, which expressions may be where, and what the actions take that it knows.
func lint(t *testing.T, name string, text []byte) []string {
	t.Helper()

	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}

	found, err := linter.Lint(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}

	out := make([]string, len(found))
	for i, e := range found {
		out[i] = e.Error()
	}

	return out
}

func TestTheWorkflowsAreAsGitHubTakesThem(t *testing.T) {
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no workflow: %v", err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, wrong := range lint(t, file, text) {
			t.Error(wrong)
		}

		if !strings.Contains(string(text), "permissions:\n  contents: read\n") {
			t.Errorf("%s: it does not say that it needs to read alone", file)
		}
	}
}

// TestAMistakeIsFound in each part of the workflow that a mistake is made in.
func TestAMistakeIsFound(t *testing.T) {
	text, err := os.ReadFile("../policy-tests.yaml")
	if err != nil {
		t.Fatal(err)
	}

	for was, is := range map[string]string{
		"pull_request:\n":          "pull_requests:\n",
		"contents: read":           "contents: reads",
		"timeout-minutes: 20":      "timeout-minute: 20",
		"runs-on: ubuntu-24.04":    "runs-on: ubuntu-2404",
		"persist-credentials":      "persist-credential",
		"steps.plugin.outputs":     "steps.plugins.outputs",
		"env.KAUSALITY != 'main'":  "env.KAUSALITY != main",
		"actions/upload-artifact@": "actions/upload-artifact:",
	} {
		wrong := strings.Replace(string(text), was, is, 1)
		if wrong == string(text) {
			t.Errorf("there is no %q in the workflow", was)
		}

		if found := lint(t, "policy-tests.yaml", []byte(wrong)); len(found) == 0 {
			t.Errorf("%q is not found", is)
		}
	}
}
