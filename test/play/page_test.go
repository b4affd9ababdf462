// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

func TestAPageHasASectionForEachHeading(t *testing.T) {
	cases := map[string]struct {
		reason, page string
		want         []play.Section
	}{
		"empty": {reason: "What is above the first heading is a section, though there is nothing.", want: []play.Section{{}}},
		"headings": {
			reason: "A section ends where a heading begins, of whatever level.", page: "a\n# B\nb\n\n### C, d\nc",
			want: []play.Section{{Text: "a\n"}, {Level: 1, Heading: "B", Line: 2, Text: "b\n\n"}, {Level: 3, Heading: "C, d", Line: 5, Text: "c"}},
		},
		"blocks": {
			reason: "Within a block nothing is a heading.", page: "## A\n```yaml\n# b\nb: 1\n```\n```\n```\n",
			want: []play.Section{{}, {
				Level: 2, Heading: "A", Line: 1, Text: "```yaml\n# b\nb: 1\n```\n```\n```\n",
				Blocks: []play.Block{{Language: "yaml", Line: 2, Text: "# b\nb: 1\n"}, {Line: 6}},
			}},
		},
		"list": {
			reason: "A block may be of an item of a list.", page: "1. A\n\n   ```text\n   b\n   ```\n",
			want: []play.Section{{Text: "1. A\n\n   ```text\n   b\n   ```\n", Blocks: []play.Block{{Language: "text", Line: 3, Text: "   b\n"}}}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, play.Sections(tc.page)); diff != "" {
				t.Errorf("%s\nSections: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBlocksAreThoseOfALanguage(t *testing.T) {
	page := "```yaml\na: 1\n```\n# B\n```console\nadmin$ b\n```\n```yaml\nc: 1\n```\n"

	want := []play.Block{{Language: "yaml", Line: 1, Text: "a: 1\n"}, {Language: "yaml", Line: 8, Text: "c: 1\n"}}
	if diff := cmp.Diff(want, play.Blocks(page, "yaml")); diff != "" {
		t.Errorf("Blocks: -want, +got:\n%s", diff)
	}
}

func TestAHeadingIsLinkedByItsAnchor(t *testing.T) {
	for heading, want := range map[string]string{
		"A, or b":                     "a-or-b",
		"`kausality_held` and _more_": "kausality_held-and-_more_",
		"Who may, and who may not?":   "who-may-and-who-may-not",
		"Größe 2":                     "größe-2",
	} {
		if got := play.Anchor(heading); got != want {
			t.Errorf("Anchor(%q): %q, want %q", heading, got, want)
		}
	}
}
