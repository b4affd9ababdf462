// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPackagesSayWhatEachOfTheirFilesHas checks that the comment of each package of several files lists them: go doc shows functions
// without their files.
func TestPackagesSayWhatEachOfTheirFilesHas(t *testing.T) {
	const several = 4

	packages := 0

	for _, tree := range []string{
		"engine", "fn", "webhook", "gatecontroller", "cmd/kausality-manager",
		"internal/audit", "internal/decisionlog", "internal/doctor", "internal/logfile",
	} {
		walk(t, filepath.Join(root, tree), func(dir string) {
			files, comment := filesOf(t, dir)
			if len(files) < several {
				return
			}

			packages++

			var listed []string
			for _, m := range regexp.MustCompile(`(?m)^ {2}- (\w+\.go): .`).FindAllStringSubmatch(comment, -1) {
				listed = append(listed, m[1])
			}

			slices.Sort(listed)

			if diff := cmp.Diff(files, listed); diff != "" {
				t.Errorf("%s: the package's comment lists other files than there are, -are +listed:\n%s", dir, diff)
			}
		})
	}

	if packages < 30 {
		t.Errorf("%d packages, want at least 30", packages)
	}
}

// walk visits the directories below one, and itself.
func walk(t *testing.T, top string, each func(dir string)) {
	t.Helper()

	if err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}

		if err == nil && d.IsDir() {
			each(path)
		}

		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// filesOf are the files of a package, sorted, without its tests, doc.go and what is generated; and the package's comment.
func filesOf(t *testing.T, dir string) (files []string, comment string) {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_") {
			continue
		}

		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}

		if text := f.Doc.Text(); text != "" { // One file has it.
			comment = text
		}

		if name != "doc.go" {
			files = append(files, name)
		}
	}

	return files, comment
}
