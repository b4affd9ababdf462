// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
)

// DecisionLog logs decisions. It does not wait, and keeps nothing of what it is given.
type DecisionLog interface {
	Record(asked decisionlog.Asked, req *request.Request, d *decision.Decision)
}

// LogDecisions has decisions logged from here on: it is called before the function is.
func (f *Function) LogDecisions(log DecisionLog) { f.decisions = log }

// LogCounters count what is written to the log of decisions.
func (f *Function) LogCounters() logfile.Counters { return f.metrics.log }

// loggedDecision is a decision that is to be logged.
type loggedDecision struct {
	asked decisionlog.Asked
	req   request.Request
	made  decision.Decision
}

// logDecisions logs what is decided, once all of it is.
func (s *state) logDecisions() {
	for i := range s.logging {
		s.decisions.Record(s.logging[i].asked, &s.logging[i].req, &s.logging[i].made)
	}
}

// watch notes what is decided about a composed resource, to be logged.
func (s *state) watch(req *composition.Request) {
	if s.decisions == nil {
		return
	}

	answers := &decisionlog.Answers{}
	req.Basis.Params = answers.WatchParams(req.Basis.Params)

	by := decisionlog.By{Part: decisionlog.PartFunction, Composite: &decisionlog.Composite{
		APIVersion: s.xr.GetAPIVersion(), Kind: s.xr.GetKind(), Namespace: s.xr.GetNamespace(), Name: s.xr.GetName(),
		Resource: req.Name, PolicySelector: s.input.PolicySelector,
	}}

	req.Asked = func(ask *request.Request, d *decision.Decision) {
		s.logging = append(s.logging, loggedDecision{decisionlog.Asked{By: by, Answers: answers}, *ask, *d})
	}
}
