// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALineIsLaidOutSoThatItCanBeRead(t *testing.T) {
	word := strings.Repeat("x", 58)

	cases := map[string]struct {
		reason string
		kind   Kind
		line   string
		limit  int
		want   []string
	}{
		"Short":    {"What fits stays as it is.", Shown, "  a  b ", 0, []string{"     │   a  b "}},
		"Empty":    {"An empty line is one.", Shown, "", 0, []string{"     │ "}},
		"Sentence": {"It is broken between words.", Said, word + " " + word + " end", 0, []string{"   " + word, "     " + word + " end"}},
		"Long":     {"A word that is wider than the terminal has a row of its own.", Shown, word + word, 0, []string{"     │ " + word + word}},
		"Tree": {
			"It goes on below where its text began, and no space is left over.", Shown, "   └─ " + word + "  " + word, 0,
			[]string{"     │    └─ " + word, "     │         " + word},
		},
		"Command": {
			"A shell would understand it: no break in quotes, or behind a flag.", Typed, "hans$ kubectl " + word + " -p 'a b c d e f g h i j k' end", 0,
			[]string{"     │ hans$ kubectl " + word + ` \`, "     │   -p 'a b c d e f g h i j k' end"},
		},
		"Cut": {
			"What is too long says that it goes on.", Shown, strings.Repeat(word+" ", 5), 2,
			[]string{"     │ " + word, "     │   " + word + " …"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Split(painter(plain).rows(lineRows(tc.kind, 0, tc.line, tc.limit)), "\n")
			if diff := cmp.Diff(tc.want, got[:len(got)-1]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
