// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Move is what to do with a gate.
type Move string

// Moves.
const (
	// Stay leaves the gate as it is.
	Stay Move = "Stay"
	// TakeOver records an open gate that was found without a record.
	TakeOver Move = "TakeOver"
	// OpenUp opens the gate, widens it, or records what it is open for now.
	OpenUp Move = "Open"
	// CloseUp closes the gate.
	CloseUp Move = "Close"
	// Ungate gives a resource what its Composition asked for, and takes its gate
	// away: its provider does not support management policies, or its Composition
	// runs the function in mode Audit.
	Ungate Move = "Ungate"
)

// Options of a gate.
type Options struct {
	// LateInitialize is whether the provider's runtime supports Observe and LateInitialize with
	// any other action, or none (crossplane-runtime 1.20 and newer).
	LateInitialize bool
	// WithoutLateInitialize are kinds whose provider's runtime does not.
	WithoutLateInitialize management.Kinds
	// WithoutDrift are kinds of which drift is not looked for: their providers show other values than their specs have, or not always
	// the same ones.
	WithoutDrift management.Kinds
	// Identity is what decides in this installation which external object a managed resource stands for.
	Identity identity.Fields
	// Settle is how long a change must look applied where the resource's
	// status does not show the changed fields.
	Settle time.Duration
	// MaxOpen is how long a gate may be open before that is reported.
	MaxOpen time.Duration
	// CloseOverdue closes a gate that has been open for MaxOpen. Its
	// allowances are not consumed: after another MaxOpen, or at once for a
	// newer allowance, it opens again. A gate that is open for the resource's
	// first creation stays open, and so does that of a resource being deleted.
	CloseOverdue bool
	// PolicyGate returns what a policy says of the gates that its allowances
	// open, which goes before Settle, MaxOpen and CloseOverdue; nil for nothing.
	// Nil where no policy says anything.
	PolicyGate func(policy string) *policy.Gate
	// WithholdDelete leaves what may be deleted for later.
	WithholdDelete bool
	// Windows there are, in force or not. Those that allow External actions only
	// open gates by themselves.
	Windows []v1alpha1.UpgradeAllowance
	// Gated are the other managed resources among which one may stand for the same external object; the error where not all
	// are known yet. It is asked before a Delete or what a window gives by itself is served. Nil for none.
	Gated func() ([]unstructured.Unstructured, error)
}

// Plan is what to do with one managed resource's gate now.
type Plan struct {
	// Move to make.
	Move Move
	// Policies is the value of spec.managementPolicies.
	Policies []string
	// Record is the value of kausality.io/gate; its Since is the time of the
	// move.
	Record v1alpha1.GateRecord
	// Allowances is the value of kausality.io/allowances.
	Allowances []v1alpha1.Allowance
	// Why says what the plan waits for or follows from, for a person.
	Why string
	// Wait is what an open gate that stays open waits for.
	Wait managed.Wait
	// By are the allowances that the plan is about: those that the gate is
	// opened for, is closed after, or is open for.
	By []v1alpha1.Allowance
	// Broken is why it cannot be known whether the change has landed, where that
	// is so.
	Broken error
	// Overdue is true when the gate has been open for too long.
	Overdue bool
	// Ungated is true when there is no gate, or none that keeps anybody from
	// anything, for the provider does not support management policies.
	Ungated bool
	// Again is when to check again though nothing changes; zero for never.
	Again time.Duration
	// Unread is true of the closing of a gate of which an annotation is not understood: what they say is written as it is.
	Unread bool
	// LeavesBehind is what stays outside without a managed resource when the gate is moved; nil for nothing.
	LeavesBehind *v1alpha1.ExternalIdentity
	// Opens are the windows that open the gate by themselves, and did not before.
	Opens []v1alpha1.GateWindow
	// Twin is what stands for the same external object, where the gate stays closed because of that; nil for nothing.
	Twin *unstructured.Unstructured
}

// planning is all that the next move is planned by.
type planning struct {
	m      managed.Resource
	limits managed.Limits
	now    time.Time
	given  windowsGiven
	// shared is asked which other managed resource stands for the same external object.
	shared *sharing
	// withhold leaves what may be deleted for later.
	withhold bool
	// pending are the External allowances, each with the actions it still has
	// to serve.
	pending []v1alpha1.Allowance
}

// planningOf is what the move of a gate is planned by, by some options. The error is of an annotation that does not
// parse; readable is true where record and allowances do, and recorded where the record does.
func planningOf(u *unstructured.Unstructured, opts Options, now time.Time) (p planning, readable, recorded bool, err error) {
	kind := u.GroupVersionKind().GroupKind()
	p = planning{
		m: managed.Resource{
			Object: u, Current: managed.CurrentOf(u), Identity: opts.Identity,
			LateInitialize: opts.LateInitialize && !opts.WithoutLateInitialize.Has(kind), LooksForDrift: !opts.WithoutDrift.Has(kind),
		},
		limits: limitsOf(opts), now: now, given: windowsGiven{windows: opts.Windows}, withhold: opts.WithholdDelete,
	}

	var policies, record, allowances error

	p.m.Record, record = managed.ParseRecord(u)
	p.m.Record = managed.GatedAgain(u, p.m.Record)
	p.m.Allowances, allowances = allowance.Parse(u)
	p.m.Desired, policies = managed.Widest(u, p.m.Record, p.m.Allowances)
	p.shared = &sharing{of: u, identity: opts.Identity, gated: opts.Gated}

	for _, err := range []error{policies, record, allowances, managed.Unreadable(u)} {
		if err != nil {
			return p, record == nil && allowances == nil, record == nil, fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	return p, true, true, nil
}

// PlanFor decides what to do with a managed resource's gate. The error is of
// an annotation that does not parse: the plan then opens nothing, widens
// nothing, and writes nothing over that annotation.
func PlanFor(u *unstructured.Unstructured, opts Options, now time.Time) (Plan, error) {
	// 1. What the resource says.
	p, readable, recorded, err := planningOf(u, opts, now)
	if err != nil {
		return p.unread(readable, recorded), err
	}

	if p.m.Record == nil && p.m.Existing() {
		p.m.Desired, _ = managed.Widest(u, &v1alpha1.GateRecord{Existed: true}, p.m.Allowances) // It parsed before.
	}

	// 2. What windows give and take back, and what is to be served.
	p.m, p.given = byWindows(p.m, p.given, p.shared, now)

	if p.pending = p.unserved(); p.m.AwaitsCreation() {
		p.pending = managed.Without(p.pending, management.ActionDelete)
	}

	// 3. The move.
	plan := noteKeeps(p.m, now, p.given, p.plan())
	p.shared.note(&plan)

	plan.Ungated = plan.Record.State == v1alpha1.GateUngated && !plan.Record.Audit || managed.Unsupported(u)

	// A plan that opens knows best itself what for.
	if plan.Record.State == v1alpha1.GateOpen {
		plan.By = managed.UnderWay(&plan.Record)

		if ends := p.given.windowEnds(p.m, p.now, plan.By); ends > 0 && (plan.Again == 0 || ends < plan.Again) {
			plan.Again = ends
		}
	} else if plan.By == nil && p.m.Record != nil && p.m.Record.State == v1alpha1.GateOpen {
		plan.By = managed.UnderWay(p.m.Record)
	}

	return plan, nil
}

// limitsOf are those of some options.
func limitsOf(opts Options) managed.Limits {
	return managed.Limits{Settle: opts.Settle, MaxOpen: opts.MaxOpen, CloseOverdue: opts.CloseOverdue, Policy: opts.PolicyGate}
}

// MaxOpen returns how long a gate may be open, as it is recorded: the least of
// what the policies say whose allowances hold it open, and the options where
// they say nothing. 0 is for ever.
func MaxOpen(rec *v1alpha1.GateRecord, opts Options) time.Duration {
	return managed.Resource{Record: rec}.Terms(limitsOf(opts)).MaxOpen
}
