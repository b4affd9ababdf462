// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Decision makes the request for the engine. Policies, windows and
// Enforcements that do not compile are left out and returned as errors.
func (s *Scenario) Decision() (request.Request, []error) {
	set := s.reader.compiled.Set(inforce.Objects{
		Policies: s.Policies, Bindings: s.Bindings, Windows: s.Upgrades, Enforcements: s.Enforcements,
	})

	settings := request.Settings{
		Crossplane: cmp.Or(s.Request.Crossplane, Crossplane), Manager: cmp.Or(s.Request.Manager, Manager), Gates: s.Request.Gates,
	}

	req := request.Request{
		Basis:     set.Basis(settings, moment(s.Request.Now)),
		Operation: request.Operation(s.Request.Operation),
		Old:       s.Old, New: s.New, Parent: s.Parent, Namespace: s.Namespace,
		User:       s.user(),
		Orphans:    s.Request.Orphans,
		ParentGone: s.Request.ParentGone, ParentSettles: s.Request.ParentSettles,
		Resource: schema.GroupResource{Group: s.group(), Resource: s.Request.Resource},
		Versions: s.Request.Versions,
		Action:   s.Request.Action,
		DryRun:   s.Request.DryRun, Options: s.Request.Options, FieldManager: resource.String(s.Request.Options, "fieldManager"),
	}

	req.Basis.Params = s.FindParams

	if s.Request.Granted != nil {
		req.Authorizer = s
	}

	return req, set.Bad
}

// user is who asks.
func (s *Scenario) user() policy.User {
	u := s.Request.User
	if u == nil {
		name := cmp.Or(s.Request.Crossplane, Crossplane)

		return policy.User{Name: name, Groups: policy.ServiceAccountGroups(name)}
	}

	return policy.User{Name: u.Name, Groups: u.Groups, UID: u.UID, Extra: u.Extra}
}

// Describe is a decision as want.yaml says it, in the words of the log of decisions. By which
// digest a change would be approved it does not say: nobody could write that by hand.
func Describe(d decision.Decision) Want {
	o := decisionlog.OutcomeOf(&d)

	held := slices.Clone(o.Held)
	for i := range held {
		held[i].Digest = ""
	}

	return Want{
		Denied: o.Reason, Action: o.Action, Enforcements: o.Enforcements, Findings: o.Findings, Forged: o.Forged, Held: held,
		Problems: o.Problems, Shadow: o.Shadow, Warnings: o.Warnings,
	}
}

func (s *Scenario) plan() (Plan, error) {
	opts := gate.Options{LateInitialize: !s.Gate.OldRuntime, Settle: time.Minute, MaxOpen: time.Hour, CloseOverdue: s.Gate.CloseOverdue}

	for _, o := range []struct {
		text string
		into *time.Duration
	}{{s.Gate.Settle, &opts.Settle}, {s.Gate.MaxOpen, &opts.MaxOpen}} {
		if o.text == "" {
			continue
		}

		d, err := time.ParseDuration(o.text)
		if err != nil {
			return Plan{}, s.section(fileGate).fail(0, err)
		}

		*o.into = d
	}

	opts.PolicyGate, opts.Windows = s.policyGate(s.reader.gates), s.Upgrades
	p, err := gate.PlanFor(s.Object, opts, moment(s.Gate.Now))
	out := Plan{Move: p.Move, Policies: p.Policies, Why: p.Why, Overdue: p.Overdue, Ungated: p.Ungated, Left: p.Allowances}

	if p.Broken != nil {
		out.Broken = p.Broken.Error()
	}

	if p.Move != gate.Stay && !p.Unread {
		out.Record = &p.Record
		out.Record.Since = metav1.NewTime(out.Record.Since.UTC())
	}

	if p.Again > 0 {
		out.Again = p.Again.String()
	}

	if err != nil {
		out.Problem = err.Error()
	}

	return out, nil
}

// policyGate returns what the scenario's policies say of gates.
func (s *Scenario) policyGate(compiled *policy.Cache) func(name string) *policy.Gate {
	return func(name string) *policy.Gate {
		for i := range s.Policies {
			if s.Policies[i].GetName() == name {
				return compiled.Gate(&s.Policies[i])
			}
		}

		return nil
	}
}

// keep is what the engine makes of the upkeep.
func (s *Scenario) keep() map[string]string {
	if annotations := stamp.Upkeep(s.Object); annotations != nil {
		return annotations
	}

	return map[string]string{}
}
