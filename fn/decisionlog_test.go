// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// logged are the entries that are logged.
type logged struct {
	encoder decisionlog.Encoder
	entries []decisionlog.Entry
	errs    []error
}

func (l *logged) Record(asked decisionlog.Asked, req *request.Request, d *decision.Decision) {
	entry, err := l.encoder.Encode(asked, req, d)
	l.entries, l.errs = append(l.entries, entry), append(l.errs, err)
}

// TestWhatChangesIsLoggedWithWhatDecidesItAgain puts to the function each scenario that
// Crossplane can: what it decides about a change is logged once, with its policies and
// parameters, and nothing is logged where nothing changes.
func TestWhatChangesIsLoggedWithWhatDecidesItAgain(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	changed, unchanged := 0, 0

	for _, s := range all {
		if !composes(s) {
			continue
		}

		t.Run(s.Name, func(t *testing.T) {
			req, _ := s.Decision()
			req.ParentSettles, req.Action = true, v1alpha1.ActionHold
			log := &logged{}

			f := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return req.Basis.Now }))
			f.LogDecisions(log)

			rsp, err := f.RunFunction(t.Context(), composing(t, s))
			if err != nil {
				t.Fatal(err)
			}

			want := 0
			if d := decision.Decide(req); len(d.Findings) > 0 {
				want = 1
			}

			if len(log.entries) < want || len(log.entries) > 1 {
				t.Fatalf("%d decisions are logged, want %d: %v", len(log.entries), want, rsp.GetResults())
			}

			if len(log.entries) == 0 {
				unchanged++

				return
			}

			changed++

			if log.errs[0] != nil {
				t.Fatal(log.errs[0])
			}

			checkLogged(t, log.entries[0], decisionlog.Composite{
				APIVersion: s.Parent.GetAPIVersion(), Kind: s.Parent.GetKind(), Namespace: s.Parent.GetNamespace(), Name: s.Parent.GetName(),
				Resource: "resource",
			})
		})
	}

	if changed < 80 || unchanged == 0 {
		t.Errorf("%d scenarios change something, and %d nothing", changed, unchanged)
	}
}

// checkLogged checks for whom an entry was decided, and that it is decided so again.
func checkLogged(t *testing.T, e decisionlog.Entry, of decisionlog.Composite) {
	t.Helper()

	var (
		was   decisionlog.Decision
		force decisionlog.InForce
	)

	if err := json.Unmarshal(e.Decision, &was); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(e.InForce, &force); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(decisionlog.By{Part: decisionlog.PartFunction, Composite: &of}, was.By); diff != "" {
		t.Errorf("by, -want, +got:\n%s", diff)
	}

	unknown := &decisionlog.Unknown{}

	req, err := was.Request(inforce.NewCache().Set(force.Objects()), unknown)
	if err != nil {
		t.Fatal(err)
	}

	d := was.Decide(req)

	if diff := cmp.Diff(was.Outcome, decisionlog.OutcomeOf(&d)); diff != "" || len(unknown.What()) > 0 {
		t.Errorf("decided again, not known: %v, -logged, +again:\n%s", unknown.What(), diff)
	}
}
