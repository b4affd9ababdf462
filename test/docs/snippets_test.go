// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSnippetsAreOfTheExamples has what is shown first be what the examples'
// tests apply.
func TestSnippetsAreOfTheExamples(t *testing.T) {
	snippets := regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n")
	from := regexp.MustCompile(`^# (examples/\S+\.yaml)\n`)

	for _, page := range []string{"README.md", "docs/getting-started.md"} {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}

		found := snippets.FindAllStringSubmatch(string(raw), -1)
		if len(found) == 0 {
			t.Errorf("%s shows no YAML", page)
		}

		for _, m := range found {
			source := from.FindStringSubmatch(m[1])
			if source == nil {
				t.Errorf("%s: the first line does not say which example this is of, as # examples/NAME/FILE.yaml:\n%s", page, m[1])

				continue
			}

			example, err := os.ReadFile(filepath.Join(root, source[1]))
			if err != nil {
				t.Errorf("%s: %v", page, err)

				continue
			}

			if !strings.Contains(string(example), strings.TrimPrefix(m[1], source[0])) {
				t.Errorf("%s: %s has not this in it:\n%s", page, source[1], m[1])
			}
		}
	}
}
