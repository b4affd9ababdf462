// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"flag"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

var update = flag.Bool("update", false, "write what the engine decides into the scenarios")

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
			want, patched, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}

			if *update {
				if err := s.Save(".", want, patched); err != nil {
					t.Fatal(err)
				}

				return
			}

			if diff := cmp.Diff(s.Want, want); diff != "" {
				t.Errorf("%s\nwant.yaml, -want, +got:\n%s", s.Reason, diff)
			}

			if diff := cmp.Diff(s.Patched, patched); diff != "" {
				t.Errorf("%s\npatched.yaml, -want, +got:\n%s", s.Reason, diff)
			}
		})
	}
}

// requests are what the scenarios ask, those that ask something, by their names.
func requests(t *testing.T) iter.Seq2[string, decision.Request] {
	t.Helper()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	return func(yield func(string, decision.Request) bool) {
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
