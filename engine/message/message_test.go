// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kausality-io/kausality-crossplane/engine/message"
)

func TestATextIsOneShortLine(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("ä", 300)

	for name, tc := range map[string]struct{ got, want string }{
		"Short":         {message.Cut("a\nb\x00", 10), "a b "},
		"Long":          {message.Cut("abcdefgh", 6), "abc..."},
		"Words":         {message.CutWords("ab cde fgh", 9), "ab cde..."},
		"NoWords":       {message.CutWords("abcdefgh", 6), "abc..."},
		"AllWords":      {message.CutWords("ab c...", 10), "ab c..."},
		"Bytes":         {message.Cut("a\xff", 10), "a?"},
		"NoRoom":        {message.Cut("abcdefgh", 2), "..."},
		"First":         {message.First("full", "less"), "full"},
		"Less":          {message.First(long, "less"), "less"},
		"None":          {message.First(long, long), strings.Repeat("ä", message.Most-3) + "..."},
		"Joined":        {message.Join([]string{"a", "b"}, 10), "a; b"},
		"JoinedSome":    {message.Join([]string{"a", "b", strings.Repeat("c", 20)}, 20), "a; b; and 1 more"},
		"JoinedStart":   {message.Join([]string{strings.Repeat("c", 30), "b"}, 25), "cccccccccc...; and 1 more"},
		"JoinedNone":    {message.Join(nil, 10), ""},
		"Pages":         {strings.Join(message.Pages([]string{"a", "b", "cccc", "dddddddd"}, 7), "|"), "a; b|cccc|dddd..."},
		"Detailed":      {message.Detailed("why", "kubectl get x"), "why"},
		"DetailedShort": {message.Detailed(long, "kubectl get x"), strings.Repeat("ä", message.Most-23) + "... More: kubectl get x"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", name, tc.got, tc.want)
		}

		if n := utf8.RuneCountInString(tc.got); n > message.Most {
			t.Errorf("%s has %d characters", name, n)
		}
	}
}
