// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

func TestCommandsAreThoseOfConsoleBlocks(t *testing.T) {
	page := "```console\nadmin$ kubectl get a \\\n    -n b\nname\n\nanna$ kubectl get c\n```\n" +
		"```yaml\nadmin$ no command\n```\n```console\nmore\nhans$ d \\\n```\n```console\nhans$ e\n```\n"

	want := []play.Command{
		{Line: 2, User: "admin", Text: "kubectl get a -n b", Shown: []string{"name", ""}},
		{Line: 6, User: "anna", Text: "kubectl get c", Shown: []string{"more"}},
		{Line: 13, User: "hans", Text: "d "},
		{Line: 16, User: "hans", Text: "e"},
	}

	got, err := play.Commands(page)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Commands: %v: -want, +got:\n%s", err, diff)
	}
}

func TestOutputBeforeACommandIsAMistake(t *testing.T) {
	if got, err := play.Commands("# A\n```console\nnobody$ kubectl get a\n```\n"); err == nil || !strings.Contains(err.Error(), "line 3: ") {
		t.Errorf("Commands: %+v, %v", got, err)
	}
}

func TestACommandIsTypedAfterAPrompt(t *testing.T) {
	for want, c := range map[string]play.Command{
		"admin$ kubectl get a\n": {Text: "kubectl get a"},
		"hans$ kubectl get a\n":  {User: "hans", Text: "kubectl get a"},
	} {
		if got := c.Typed(); got != want {
			t.Errorf("Typed: %q, want %q", got, want)
		}
	}
}

func TestWhatIsPrintedIsComparedWithWhatIsShown(t *testing.T) {
	exit := errors.New("exit status 1")

	cases := map[string]struct {
		reason, output string
		shown          []string
		err            error
		want           string
	}{
		"all":             {reason: "All lines are there, in their order.", shown: []string{"a", "b"}, output: "a\nb\n"},
		"among others":    {reason: "Other lines may be between.", shown: []string{"a", "b"}, output: "x\na\ny\nb\nz\n"},
		"order":           {reason: "The order counts.", shown: []string{"b", "a"}, output: "a\nb\n", want: `it does not say "a"`},
		"twice":           {reason: "A line counts once.", shown: []string{"a", "a"}, output: "a\n", want: `it does not say "a"`},
		"spaces":          {reason: "Columns have the width they have.", shown: []string{"NAME  KIND"}, output: "NAME KIND   \n"},
		"dots":            {reason: "Three dots are any text.", shown: []string{"a ... [c]"}, output: "a b [c] d\n"},
		"no pattern":      {reason: "All else is what it is.", shown: []string{"a.c"}, output: "abc\n", want: `it does not say "a.c"`},
		"failed":          {reason: "A command must not fail.", shown: []string{"a"}, output: "a\n", err: exit, want: "exit status 1"},
		"refused":         {reason: "What is refused is shown.", shown: []string{"Error from server: a"}, output: "Error from server: a\n", err: exit},
		"not refused":     {reason: "It must be refused then.", shown: []string{"Error from server: a"}, output: "Error from server: a\n", want: "it says"},
		"differs":         {reason: "A diff ends with its last difference.", shown: []string{"> a"}, output: "1c1\n> a\n", err: exit},
		"no":              {reason: "can-i says no.", shown: []string{"no"}, output: "no\n", err: exit},
		"warning":         {reason: "A warning is shown.", output: "Warning: Bucket \"a\": b\n", want: "the page does not show that it says"},
		"another warning": {reason: "A warning of Kubernetes' is not.", output: "Warning: a b c\n"},
		"shown warning":   {reason: "It is.", shown: []string{`Warning: Bucket "a": ...`}, output: "Warning: Bucket \"a\": b\n"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := play.Command{Shown: tc.shown}.Check(tc.output, tc.err)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheck: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
