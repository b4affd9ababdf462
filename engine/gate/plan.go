// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Move is what to do with a gate.
type Move string

// Moves.
const (
	// Stay leaves the gate as it is.
	Stay Move = "Stay"
	// TakeOver records an open gate that was found without a record.
	TakeOver Move = "TakeOver"
	// OpenUp opens the gate, or widens it.
	OpenUp Move = "Open"
	// CloseUp closes the gate.
	CloseUp Move = "Close"
)

// Options of a gate.
type Options struct {
	// LateInitialize is whether the provider's runtime supports Observe with
	// LateInitialize alone (crossplane-runtime 1.20 and newer).
	LateInitialize bool
	// Settle is how long a change must look applied where the resource's
	// status does not show the changed fields.
	Settle time.Duration
	// MaxOpen is how long a gate may be open before that is reported.
	MaxOpen time.Duration
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
	// Overdue is true when the gate has been open for too long.
	Overdue bool
	// Again is when to look again though nothing changes; zero for never.
	Again time.Duration
}

// Desired returns what the Composition asked for: what the function recorded,
// or all actions.
func Desired(u *unstructured.Unstructured) ([]string, error) {
	list, err := allowance.ParseManagementPolicies(u)
	if err != nil || list == nil {
		return order(), err
	}

	return normalize(list), nil
}

// planner holds what a plan needs more than once.
type planner struct {
	u          *unstructured.Unstructured
	opts       Options
	now        time.Time
	desired    []string
	current    []string
	record     *v1alpha1.GateRecord
	allowances []v1alpha1.Allowance
	pending    []v1alpha1.Allowance
}

// PlanFor decides what to do with a managed resource's gate. The error is of
// an annotation that does not parse; it then allows nothing.
func PlanFor(u *unstructured.Unstructured, opts Options, now time.Time) (Plan, error) {
	p := &planner{u: u, opts: opts, now: now}

	var errs [3]error

	p.desired, errs[0] = Desired(u)
	p.record, errs[1] = allowance.ParseGate(u)
	p.allowances, errs[2] = allowance.Parse(u)
	p.current = normalize(resource.Strings(u.Object, "spec", "managementPolicies"))

	if _, set := resource.Value(u.Object, "spec", "managementPolicies"); !set {
		p.current = order()
	}

	for _, a := range p.allowances {
		if allowance.External(a) && (p.record == nil || a.Generation > p.record.Consumed) && len(p.within(a.Mutations)) > 0 {
			p.pending = append(p.pending, a)
		}
	}

	plan := p.plan()

	for _, err := range errs {
		if err != nil {
			return plan, fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	return plan, nil
}

// within returns the actions of a set that the Composition asked for.
func (p *planner) within(actions []string) []string {
	return slices.DeleteFunc(Acting(actions), func(a string) bool { return !slices.Contains(p.desired, a) })
}

func (p *planner) plan() Plan {
	switch {
	case len(p.desired) == 0:
		return p.stay("paused by its Composition")
	case p.record == nil:
		return p.firstSight()
	case p.record.State == v1alpha1.GateOpen:
		return p.whileOpen()
	default:
		return p.whileClosed()
	}
}

// firstSight takes over what the function, or whoever made the resource, left.
func (p *planner) firstSight() Plan {
	asked := slices.DeleteFunc(Acting(p.current), func(a string) bool { return a == ActionDelete })
	if len(asked) == 0 || p.ready() {
		return p.close("taken over")
	}

	set, serves := Open(asked, p.desired, p.opts.LateInitialize)

	return p.move(TakeOver, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Initial: true, Allowances: p.pending,
	}, "open until first ready")
}

// ready says whether the resource was ready at its present generation.
func (p *planner) ready() bool {
	r, ok := resource.ConditionOf(p.u, resource.ConditionReady)
	if !ok || !r.True() {
		return false
	}

	_, missing := p.synced(resource.Generation(p.u))

	return missing == ""
}

func (p *planner) whileClosed() Plan {
	if len(p.pending) > 0 {
		return p.open()
	}

	if closed := Closed(p.desired, p.opts.LateInitialize); !Same(p.current, closed) {
		return p.close("put back")
	}

	return p.stay("closed")
}

// open opens the gate for all that is pending, as far as one set can serve.
func (p *planner) open() Plan {
	set, serves := Open(actionsOf(p.pending), p.desired, p.opts.LateInitialize)

	return p.move(OpenUp, set, v1alpha1.GateRecord{
		State: v1alpha1.GateOpen, Actions: serves, Consumed: p.consumed(), Allowances: p.pending,
	}, "allowed by "+initiators(p.pending))
}

func (p *planner) whileOpen() Plan {
	set, serves := Open(slices.Concat(p.record.Actions, actionsOf(p.pending)), p.desired, p.opts.LateInitialize)
	if len(serves) == 0 {
		return p.close("its Composition no longer asks for it")
	}

	if !Same(serves, p.record.Actions) || !Same(set, p.current) {
		return p.move(OpenUp, set, v1alpha1.GateRecord{
			State: v1alpha1.GateOpen, Actions: serves, Consumed: p.consumed(),
			Initial: p.record.Initial, Allowances: p.pending,
		}, "allowed by "+initiators(p.pending))
	}

	missing, again := p.landed()
	if missing == "" {
		return p.close("applied")
	}

	plan := p.stay(missing)
	plan.Again = again

	if open := p.now.Sub(p.record.Since.Time); p.opts.MaxOpen > 0 {
		plan.Overdue = open >= p.opts.MaxOpen
		if !plan.Overdue && (plan.Again == 0 || plan.Again > p.opts.MaxOpen-open) {
			plan.Again = p.opts.MaxOpen - open
		}
	}

	return plan
}

// close plans the closed set. Allowances whose actions were open have landed,
// and go; what could not be served together with them stays.
func (p *planner) close(why string) Plan {
	consumed := p.consumed()

	var left []v1alpha1.Allowance

	for _, a := range p.allowances {
		rest := p.unserved(a)

		switch {
		case !allowance.External(a) || foreign(a.Mutations):
			left = append(left, a)

			continue
		case len(rest) > 0:
			a.Mutations = rest
			left = append(left, a)

			continue
		}

		consumed = max(consumed, a.Generation)
	}

	for _, a := range left {
		if allowance.External(a) && !foreign(a.Mutations) {
			consumed = min(consumed, a.Generation-1)
		}
	}

	plan := p.move(CloseUp, Closed(p.desired, p.opts.LateInitialize), v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Consumed: max(consumed, p.consumed()),
	}, why)
	plan.Allowances = left

	return plan
}

// unserved returns the actions of an allowance that the gate was not open for.
func (p *planner) unserved(a v1alpha1.Allowance) []string {
	if p.record != nil && a.Generation <= p.record.Consumed {
		return nil
	}

	return slices.DeleteFunc(p.within(a.Mutations), func(action string) bool {
		return p.record != nil && p.record.State == v1alpha1.GateOpen && slices.Contains(p.record.Actions, action)
	})
}

func (p *planner) consumed() int64 {
	if p.record == nil {
		return 0
	}

	return p.record.Consumed
}

// move plans a write. The generation it records is the one the write itself
// produces.
func (p *planner) move(m Move, set []string, rec v1alpha1.GateRecord, why string) Plan {
	rec.Generation = resource.Generation(p.u)
	if !Same(p.current, set) {
		rec.Generation++
	}

	rec.Since = metav1.NewTime(p.now.UTC().Truncate(time.Second))
	if p.record != nil && p.record.State == rec.State && m == OpenUp {
		rec.Since = p.record.Since
	}

	return Plan{Move: m, Policies: set, Record: rec, Allowances: p.allowances, Why: why}
}

func (p *planner) stay(why string) Plan {
	plan := Plan{Move: Stay, Policies: p.current, Allowances: p.allowances, Why: why}
	if p.record != nil {
		plan.Record = *p.record
	}

	return plan
}

// foreign says whether all verbs of an External allowance are another system's,
// such as Terraform's apply, which no gate serves.
func foreign(actions []string) bool {
	return !slices.ContainsFunc(actions, func(a string) bool { return a == ActionAll || acting(a) })
}

func actionsOf(list []v1alpha1.Allowance) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.Mutations...)
	}

	return out
}

// initiators lists who asked, each once.
func initiators(list []v1alpha1.Allowance) string {
	var names []string

	for _, a := range list {
		if !slices.Contains(names, a.Initiator) {
			names = append(names, a.Initiator)
		}
	}

	return strings.Join(names, ", ")
}
