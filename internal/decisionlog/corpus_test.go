// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// recordings are made once: most of the time goes into compiling policies.
var recordings = sync.OnceValues(corpus.Recordings)

func recorded(tb testing.TB) []corpus.Recording {
	tb.Helper()

	out, err := recordings()
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

// again decides a record again, by what its line of what was in force says.
func again(t *testing.T, e decisionlog.Entry) (*decisionlog.Decision, decisionlog.Outcome, []string) {
	t.Helper()

	var by decisionlog.InForce
	if err := json.Unmarshal(e.InForce, &by); err != nil {
		t.Fatal(err)
	}

	d := &decisionlog.Decision{}
	if err := json.Unmarshal(e.Decision, d); err != nil {
		t.Fatal(err)
	}

	if by.Digest != d.InForce {
		t.Errorf("digest %s, want %s", d.InForce, by.Digest)
	}

	unknown := &decisionlog.Unknown{}

	req, err := d.Request(inforce.NewCache().Set(by.Objects()), unknown)
	if err != nil {
		t.Fatal(err)
	}

	out := d.Decide(req)

	return d, decisionlog.OutcomeOf(&out), unknown.What()
}

// TestARecordedScenarioIsDecidedAgainByteForByte also where credentials are masked.
func TestARecordedScenarioIsDecidedAgainByteForByte(t *testing.T) {
	masked, all := 0, recorded(t)

	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			was, is, unknown := again(t, s.Entry)
			if was.Masked {
				masked++
			}

			want, err := json.Marshal(was.Outcome)
			if err != nil {
				t.Fatal(err)
			}

			got, err := json.Marshal(is)
			if err != nil {
				t.Fatal(err)
			}

			if !bytes.Equal(want, got) && !was.Masked {
				t.Errorf("-recorded, +again:\n%s", cmp.Diff(was.Outcome, is))
			} else if !bytes.Equal(want, got) {
				t.Logf("masked, and decided otherwise: -recorded, +again:\n%s", cmp.Diff(was.Outcome, is))
			}

			if len(unknown) > 0 {
				t.Errorf("not known: %v", unknown)
			}
		})
	}

	if masked < 20 {
		t.Errorf("%d scenarios are masked, want at least 20", masked)
	}
}

// TestNoLineHoldsACredential of those that scenarios plant.
func TestNoLineHoldsACredential(t *testing.T) {
	t.Parallel()

	planting, err := corpus.Planting()
	if err != nil {
		t.Fatal(err)
	}

	planted := 0

	for _, s := range planting {
		if s.Request == nil {
			continue
		}

		req, _ := s.Decision()
		if raw, err := json.Marshal([]any{req.Old, req.New}); err == nil && corpus.Leaks(string(raw)) {
			planted++
		}
	}

	if planted < 10 {
		t.Errorf("%d scenarios hold a credential, want at least 10", planted)
	}

	for _, s := range recorded(t) {
		for _, line := range strings.SplitAfter(string(s.Entry.Decision)+string(s.Entry.InForce), ",") {
			if corpus.Leaks(line) {
				t.Errorf("%s: %s", s.Name, line)
			}
		}
	}
}
