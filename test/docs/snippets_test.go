// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

// TestSnippetsAreOfTheExamples has what is shown first be what the examples'
// tests apply.
func TestSnippetsAreOfTheExamples(t *testing.T) {
	from := regexp.MustCompile(`^# (examples/\S+\.yaml)\n`)

	for _, page := range []string{"docs/getting-started.md"} {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}

		found := play.Blocks(string(raw), "yaml")
		if len(found) == 0 {
			t.Errorf("%s shows no YAML", page)
		}

		for _, b := range found {
			source := from.FindStringSubmatch(b.Text)
			if source == nil {
				t.Errorf("%s: the first line does not say which example this is of, as # examples/NAME/FILE.yaml:\n%s", page, b.Text)

				continue
			}

			example, err := os.ReadFile(filepath.Join(root, source[1]))
			if err != nil {
				t.Errorf("%s: %v", page, err)

				continue
			}

			if !strings.Contains(string(example), strings.TrimPrefix(b.Text, source[0])) {
				t.Errorf("%s: %s has not this in it:\n%s", page, source[1], b.Text)
			}
		}
	}
}
