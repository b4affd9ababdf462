// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"flag"
	"iter"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

var (
	update      = flag.Bool("update", false, "write what the engine decides into the scenarios: want.yaml and patched.yaml")
	updateTexts = flag.Bool("update-texts", false, "write what it says to people into the scenarios: texts.yaml")
)

// fewest is how many scenarios there are at least: each sentence of the design
// about changes, parents, phases, gates and so on has one.
const fewest = 150

func TestTheEngineDecidesAsTheCorpusSays(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	if len(all) < fewest {
		t.Errorf("there are %d scenarios, want at least %d", len(all), fewest)
	}

	reasons := map[string]string{}

	for _, s := range all {
		if other, ok := reasons[s.Reason]; ok {
			t.Errorf("%s and %s give the same reason: %s", other, s.Name, s.Reason)
		}

		reasons[s.Reason] = s.Name

		t.Run(s.Name, func(t *testing.T) {
			outcome, err := s.Outcome()
			if err != nil {
				t.Fatal(err)
			}

			got, err := s.Renew(outcome)
			if err != nil {
				t.Fatal(err)
			}

			want := s.Written

			// Each flag is for its own sections.
			if *update {
				want.Want, want.Patched = got.Want, got.Patched
			}

			if *updateTexts {
				want.Texts = got.Texts
			}

			if want != s.Written {
				if err := s.Save(".", want); err != nil {
					t.Fatal(err)
				}
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", s.Reason, diff)
			}
		})
	}
}

// TestWarningsAreShort in all scenarios.
func TestWarningsAreShort(t *testing.T) {
	t.Parallel()

	warned := 0

	for name, req := range requests(t) {
		for _, w := range decision.Decide(req).Warnings {
			if n := utf8.RuneCountInString(w); n > message.Most {
				t.Errorf("%s: %d characters: %s", name, n, w)
			}

			warned++
		}
	}

	if warned < fewest {
		t.Errorf("there are %d warnings, want at least %d", warned, fewest)
	}
}

// requests are what the scenarios ask, those that ask something, by their names.
func requests(t *testing.T) iter.Seq2[string, request.Request] {
	t.Helper()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	return func(yield func(string, request.Request) bool) {
		for _, s := range all {
			if s.Request == nil {
				continue
			}

			if req, _ := s.Decision(); !yield(s.Name, req) {
				return
			}
		}
	}
}
