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
