// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheFunctionsOfTheWalkthroughAreWhereItSays reads docs/code.md, in which each
// function is a link to its file.
func TestTheFunctionsOfTheWalkthroughAreWhereItSays(t *testing.T) {
	page := filepath.Join(root, "docs", "code.md")
	links := regexp.MustCompile("\\[`([A-Za-z.]+)`\\]\\(([^)]+\\.go)\\)").FindAllSubmatch(text(t, page), -1)

	for _, m := range links {
		name, file := string(m[1]), filepath.Join(filepath.Dir(page), string(m[2]))
		owner, short, qualified := strings.Cut(name, ".")

		if !qualified {
			owner, short = "", name
		}

		// PACKAGE.Function, Type.Method, or either without what it is of.
		code := text(t, file)
		function := regexp.MustCompile(`(?m)^func `+short+`[\[(]`).Match(code) && (owner == "" || owner == filepath.Base(filepath.Dir(file)))
		receiver := `\w+`

		if owner != "" {
			receiver = owner
		}

		method := regexp.MustCompile(`(?m)^func \(\w+ \*?` + receiver + `\) ` + short + `\(`).Match(code)

		if !function && !method {
			t.Errorf("%s: %s has no function %s", page, m[2], name)
		}
	}

	if len(links) < 25 {
		t.Errorf("%d functions, want at least 25", len(links))
	}
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
