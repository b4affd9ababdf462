// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTailIsTheLastLines(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		_, _ = fmt.Fprintf(&long, "line %d of a log that is longer than what is read of it\n", i)
	}
	cases := map[string]struct {
		reason string
		log    string
		first  string
		last   string
		lines  int
	}{
		"Short":     {reason: "All of a short log is shown.", log: "a\nb\n", first: "a", last: "b", lines: 2},
		"NoNewline": {reason: "A last line without its end counts.", log: "a\nb", first: "a", last: "b", lines: 2},
		"Long":      {reason: "Only the end of a long one is.", log: long.String(), first: "line 4980 ", last: "line 4999 ", lines: tailLines},
		"Empty":     {reason: "Of an empty one it is said that it is.", log: "", first: "(nothing in ", last: "", lines: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.log")
			if err := os.WriteFile(path, []byte(tc.log), 0o600); err != nil {
				t.Fatal(err)
			}
			got := tail(path)
			if tc.lines == 0 {
				if !strings.HasPrefix(got, tc.first) {
					t.Errorf("%s: got %q", tc.reason, got)
				}
				return
			}
			lines := strings.Split(got, "\n")[1:]
			if len(lines) != tc.lines || !strings.HasPrefix(lines[0], tc.first) || !strings.HasPrefix(lines[len(lines)-1], tc.last) {
				t.Errorf("%s: got %d lines: %q", tc.reason, len(lines), got)
			}
		})
	}
}

func TestAMissingLogIsNoReasonToLoseTheError(t *testing.T) {
	if got := tail(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "cannot read log") {
		t.Errorf("got %q", got)
	}
}
