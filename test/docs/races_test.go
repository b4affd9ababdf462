// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTestsOfRacesAreThere reads docs/races.md, which names the tests of each race.
func TestTheTestsOfRacesAreThere(t *testing.T) {
	page := filepath.Join(root, "docs", "races.md")
	there, named := testFunctions(t), map[string]bool{}

	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllSubmatch(text(t, page), -1) {
		name := string(m[1])
		named[name] = true

		if !there[name] {
			t.Errorf("%s: there is no test %s", page, name)
		}
	}

	if len(named) < 60 {
		t.Errorf("%d tests, want at least 60", len(named))
	}
}

// testFunctions are the names of all tests of the tree, whatever their build tags.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()

	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	out := map[string]bool{}

	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}

		for _, m := range function.FindAllSubmatch(text(t, path), -1) {
			out[string(m[1])] = true
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return out
}
