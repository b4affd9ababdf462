// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// logged are the entries that are logged.
type logged struct {
	encoder decisionlog.Encoder

	mu      sync.Mutex
	entries []decisionlog.Entry
	errs    []error
}

func (l *logged) Record(asked decisionlog.Asked, req *request.Request, d *decision.Decision) {
	entry, err := l.encoder.Encode(asked, req, d)

	l.mu.Lock()
	defer l.mu.Unlock()

	l.entries, l.errs = append(l.entries, entry), append(l.errs, err)
}

// fewestLogged is how many scenarios are put to the webhook and logged at least.
const fewestLogged = 40

// TestEachDecisionIsLoggedWithWhatDecidesItAgain puts scenarios to both endpoints in which
// most is read besides the request: parents, namespaces, parameters and permissions.
func TestEachDecisionIsLoggedWithWhatDecidesItAgain(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	asked := 0

	for _, s := range all {
		if s.Request == nil || s.Request.Action != "" || s.Request.ParentSettles || s.New == nil ||
			len(s.Params) == 0 && s.Request.Granted == nil && s.Namespace == nil {
			continue
		}

		asked++

		t.Run(s.Name, func(t *testing.T) {
			req, _ := s.Decision()
			c := &cluster{policies: s.Policies, bindings: s.Bindings, upgrades: s.Upgrades, enforcements: s.Enforcements}
			c.params, c.unreadable = s.Params, s.Request.Unreadable

			for _, u := range []*unstructured.Unstructured{s.Parent, s.Namespace} {
				if u != nil {
					c.live, c.informed = append(c.live, u), append(c.informed, u)
				}
			}

			judge, log := c.judge(t, req.Basis.Now), &logged{}
			judge.Decisions = log

			if s.Request.Granted != nil {
				judge.Authorizer = &s
			}

			review := reviewOf(t, req)
			post(t, serve(t, &webhook.Mutator{Judge: judge}), review)
			post(t, serve(t, &webhook.Enforcer{Judge: judge}), review)

			if len(log.entries) != 2 {
				t.Fatalf("%d decisions are logged, want 2", len(log.entries))
			}

			for i, want := range []decisionlog.By{
				{Part: decisionlog.PartMutate, UID: "1"}, {Part: decisionlog.PartEnforce, UID: "1", Stored: true},
			} {
				if log.errs[i] != nil {
					t.Fatal(log.errs[i])
				}

				checkLogged(t, log.entries[i], want)
			}
		})
	}

	if asked < fewestLogged {
		t.Errorf("%d scenarios are logged, want at least %d", asked, fewestLogged)
	}
}

// checkLogged checks who decided an entry, and that it is decided so again.
func checkLogged(t *testing.T, e decisionlog.Entry, by decisionlog.By) {
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

	if diff := cmp.Diff(by, was.By); diff != "" {
		t.Errorf("by, -want, +got:\n%s", diff)
	}

	unknown := &decisionlog.Unknown{}

	req, err := was.Request(inforce.NewCache().Set(force.Objects()), unknown)
	if err != nil {
		t.Fatal(err)
	}

	d := was.Decide(req)

	// An error may be about what is masked.
	if diff := cmp.Diff(was.Outcome, decisionlog.OutcomeOf(&d)); diff != "" && !was.Masked || len(unknown.What()) > 0 {
		t.Errorf("decided again, not known: %v, -logged, +again:\n%s", unknown.What(), diff)
	}

	if trimmed := req.Parent != nil && !req.ReadsParent(); was.ParentTrimmed != trimmed {
		t.Errorf("the parent is trimmed: %t, want %t", was.ParentTrimmed, trimmed)
	}
}
