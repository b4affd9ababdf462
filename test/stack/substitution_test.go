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
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASubstitutionNeedsExactlyOnePlace(t *testing.T) {
	s := substitution{module: "example.org/m", file: "a.go", old: `":8080"`, new: `"127.0.0.1:0"`}
	cases := map[string]struct {
		reason string
		src    string
		want   string
		err    string
	}{
		"Once":  {reason: "The one place is changed.", src: `x := ":8080" // port`, want: `x := "127.0.0.1:0" // port`},
		"Never": {reason: "A new version may have moved it.", src: `x := ":9090"`, err: "0 times"},
		"Twice": {reason: "Which of them is meant?", src: `x, y := ":8080", ":8080"`, err: "2 times"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := s.apply(tc.src)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "example.org/m/a.go") {
					t.Errorf("%s: got error %v, want one with %q and the file", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestAFileThatIsReadOnlyIsChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(path, []byte("old"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := (substitution{old: "old", new: "new"}).applyTo(path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v, want new", got, err)
	}
}
