// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs_test checks that what the documentation refers to is there.
package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

const root = "../.."

// reference is where the generated pages are.
const reference = "docs/reference"

// fenced are blocks of code, in which nothing is a link or a heading.
func fenced() *regexp.Regexp { return regexp.MustCompile("(?s)\n```.*?\n```") }

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	links := 0

	code := regexp.MustCompile("`[^`\n]+`")

	for _, file := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(code.ReplaceAll(text(t, file), nil), -1) {
			target := string(m[1])
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}

			links++

			if missing := follow(t, file, target); missing != "" {
				t.Errorf("%s: link %q: %s", file, target, missing)
			}
		}
	}

	if links < 50 {
		t.Errorf("%d links, want at least 50", links)
	}
}

// follow says what is missing at the end of a link; nothing if it is there.
func follow(t *testing.T, file, target string) string {
	t.Helper()

	path, anchor, _ := strings.Cut(target, "#")

	to := file
	if path != "" {
		to = filepath.Join(filepath.Dir(file), path)
	}

	info, err := os.Stat(to)
	if err != nil {
		return err.Error()
	}

	if anchor == "" {
		return ""
	}

	if info.IsDir() {
		to = filepath.Join(to, "README.md")
	}

	raw, err := os.ReadFile(to)
	if err != nil {
		return err.Error()
	}

	if !slices.ContainsFunc(play.Sections(string(raw)), func(s play.Section) bool { return play.Anchor(s.Heading) == anchor }) {
		return "no heading makes this anchor"
	}

	return ""
}

// text of a page, without blocks of code.
func text(t *testing.T, file string) []byte {
	t.Helper()

	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return fenced().ReplaceAll(bytes.ReplaceAll(raw, []byte("\r"), nil), nil)
}

// pages are all that people read.
func pages(t *testing.T) []string {
	t.Helper()

	var out []string

	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}

		out = append(out, files...)
	}

	return out
}
