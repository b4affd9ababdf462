// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheFunctionsOfPagesAreWhereTheySay reads the pages in which each function is a link to its file, and how many each has at least.
func TestTheFunctionsOfPagesAreWhereTheySay(t *testing.T) {
	for name, least := range map[string]int{"code.md": 25, "races.md": 60} {
		page := filepath.Join(root, "docs", name)
		links := regexp.MustCompile("\\[`([A-Za-z.]+)`\\]\\(([^)]+\\.go)\\)").FindAllSubmatch(text(t, page), -1)

		for _, m := range links {
			if !hasFunction(t, filepath.Join(filepath.Dir(page), string(m[2])), string(m[1])) {
				t.Errorf("%s: %s has no function %s", page, m[2], m[1])
			}
		}

		if len(links) < least {
			t.Errorf("%s: %d functions, want at least %d", page, len(links), least)
		}
	}
}

// hasFunction reports whether a file has a function: PACKAGE.Function, Type.Method, or either without what it is of.
func hasFunction(t *testing.T, file, name string) bool {
	t.Helper()

	owner, short, qualified := strings.Cut(name, ".")
	if !qualified {
		owner, short = "", name
	}

	code, receiver := text(t, file), `\w+`
	if owner != "" {
		receiver = owner
	}

	function := regexp.MustCompile(`(?m)^func `+short+`[\[(]`).Match(code) && (owner == "" || owner == filepath.Base(filepath.Dir(file)))
	method := regexp.MustCompile(`(?m)^func \(\w+ \*?` + receiver + `\) ` + short + `\(`).Match(code)

	return function || method
}

// TestTheStepsOfTheWalkthroughReadOnOnePage checks that there are ten steps, and that each begins with a function of at most 60
// lines that has numbered steps of its own, or is a switch of one.
func TestTheStepsOfTheWalkthroughReadOnOnePage(t *testing.T) {
	const most, want = 60, 10

	page := filepath.Join(root, "docs", "code.md")
	steps := regexp.MustCompile("(?m)^## \\d+\\. .*\n\n\\[`(?:[A-Za-z]+\\.)?([A-Za-z]+)`\\]\\(([^)]+\\.go)\\)").FindAllSubmatch(text(t, page), -1)

	for _, m := range steps {
		name := string(m[1])
		code := text(t, filepath.Join(filepath.Dir(page), string(m[2])))

		body := regexp.MustCompile(`(?ms)^func (?:\([^)]*\) )?` + name + `\(.*?^}`).Find(code)
		if lines := strings.Count(string(body), "\n") + 1; body == nil || lines > most {
			t.Errorf("%s: %s has %d lines, want at most %d", m[2], name, lines, most)
		}

		for _, step := range []string{"// 1. ", "// 2. ", "// 3. "} {
			if !strings.Contains(string(body), step) {
				t.Errorf("%s: %s has no step %q", m[2], name, step)
			}
		}
	}

	if len(steps) != want {
		t.Errorf("%d steps that begin with a function, want %d", len(steps), want)
	}
}
