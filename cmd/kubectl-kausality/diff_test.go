// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADiffIsOfWhatSomebodyChanges(t *testing.T) {
	t.Parallel()

	const (
		object = "apiVersion: example.org/v1\nkind: Database\nmetadata:\n  annotations:\n    jira: A-1\n%s  name: db\n  generation: GENERATION\nspec:\n  size: SIZE\n"
		ours   = "    kausality.io/allowances: |\n      - kind: XDatabase\n        mutation: spec.size\n    kausality.io/trace: |\n      - field: spec.size\n"
	)

	of := func(annotations, generation, size string) string {
		return strings.NewReplacer("%s", annotations, "GENERATION", generation, "SIZE", size).Replace(object)
	}

	for name, tc := range map[string]struct {
		live, merged string
		code         int
		want, not    []string
	}{
		"Changed": {
			live: of("", "1", "small"), merged: of(ours, "2", "large"), code: 1,
			want: []string{"-  size: small\n", "+  size: large\n", "-  generation: 1\n", "     jira: A-1\n"}, not: []string{"kausality.io/", "XDatabase"},
		},
		"OnlyOurs": {live: of("", "1", "small"), merged: of(ours, "1", "small"), not: []string{"+", "-"}},
		"New":      {merged: of(ours, "1", "small"), code: 1, want: []string{"+  size: small\n"}, not: []string{"kausality.io/", "null"}},
		"Broken":   {live: "a: [", merged: of("", "1", "small"), code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			args := append(make([]string, 0, 4), "kubectl-kausality", "diff")

			for side, text := range map[string]string{"LIVE-1": tc.live, "MERGED-1": tc.merged} {
				dir := filepath.Join(t.TempDir(), side)
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}

				// Of what there is not yet, kubectl writes an empty file.
				if err := os.WriteFile(filepath.Join(dir, "example.org.v1.Database..db"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}

				if args = append(args, dir); side == "LIVE-1" && len(args) > 3 {
					args[2], args[3] = args[3], args[2]
				}
			}

			var out bytes.Buffer

			cmd := root()
			cmd.SetOut(&out)

			err := run(t.Context(), cmd, args)

			code := exitCode(err)
			if differ, ok := errors.AsType[differs](err); ok {
				code = differ.code
			}

			if code != tc.code {
				t.Errorf("it ends with %d, want %d: %v\n%s", code, tc.code, err, out.String())
			}

			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}

			for _, not := range tc.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is in\n%s", not, out.String())
				}
			}
		})
	}
}
