// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// decider holds what one decision needs more than once.
type decider struct {
	Request

	changes          []change.Change
	parentAllowances []v1alpha1.Allowance
	governing        []*enforcement.Enforcement
	verdicts         map[string]policy.Verdict
	// back are the changes that were taken back, in order.
	back     []change.Change
	decision Decision
}

// Decide judges a request. The request and its objects are not modified.
func Decide(req Request) Decision {
	d := &decider{Request: req}

	if err := d.complete(); err != nil {
		return Decision{Problems: []error{err}}
	}

	// 1. Take what only Kausality writes from the old object.
	d.protect()

	// 2. Read what the parent allows, and who enforces it.
	d.readParent()
	d.readEnforcements()

	// 3. Judge every gated change.
	d.judgeAll()

	// 4. Take back what is not allowed, where that is the action.
	d.decision.Action = d.action()
	d.hold()
	d.warn()

	// 5. Stamp why, and what may follow.
	if d.Operation == OperationDelete {
		d.grantDeletion()
	} else {
		d.stamp()
		d.decision.Object = d.New
	}

	return d.decision
}

// errNoObject is the problem with a request that is about nothing.
var errNoObject = errors.New("cannot decide: the request has neither an old nor a new object")

// complete makes the operation agree with the objects there are.
func (d *decider) complete() error {
	if d.Old != nil && d.Old.Object == nil {
		d.Old = nil
	}

	if d.New != nil && d.New.Object == nil {
		d.New = nil
	}

	switch {
	case d.Old == nil && d.New == nil:
		return errNoObject
	case d.Old == nil || d.Operation == OperationCreate && d.New != nil:
		d.Operation, d.Old = OperationCreate, nil
	case d.New == nil || d.Operation == OperationDelete:
		d.Operation, d.New = OperationDelete, nil
	default:
		d.Operation = OperationUpdate
	}

	return nil
}

// readParent parses the parent's allowances; what does not parse is reported
// and allows nothing.
func (d *decider) readParent() {
	if d.Parent == nil {
		return
	}

	list, err := allowance.Parse(d.Parent)
	if err != nil {
		d.problem(inObject(d.Parent, err))

		return
	}

	d.parentAllowances = list
}

func (d *decider) problem(err error) {
	d.decision.Problems = append(d.decision.Problems, err)
}

// readEnforcements finds the Enforcements that govern the object.
func (d *decider) readEnforcements() {
	for _, e := range d.Enforcements {
		governs, err := e.Governs(d.Resource, d.input())
		if err != nil {
			d.problem(fmt.Errorf("enforcement %q: %w", e.Name(), err))
		}

		if governs {
			d.governing = append(d.governing, e)
			d.decision.Enforcements = append(d.decision.Enforcements, e.Name())
		}
	}

	slices.Sort(d.decision.Enforcements)
}

// action is what to do about unallowed changes.
func (d *decider) action() v1alpha1.ValidationAction {
	if d.Action != "" {
		return d.Action
	}

	strictest := v1alpha1.ValidationAction("")
	if d.Old != nil && resource.BoundToClaim(d.Old) {
		strictest = v1alpha1.ActionHold
	}

	for _, e := range d.governing {
		if a := e.Action(); enforcement.Strictness(a) > enforcement.Strictness(strictest) {
			strictest = a
		}
	}

	return strictest
}

// hold puts unallowed changes back to their old value.
func (d *decider) hold() {
	if d.decision.Action != v1alpha1.ActionHold || d.Operation != OperationUpdate {
		return
	}

	for _, f := range d.decision.Findings {
		if f.Verdict == Unallowed {
			d.decision.Held = append(d.decision.Held, HeldChange(f))
			d.back = append(d.back, f.Change)
		}
	}

	if len(d.decision.Held) > 0 {
		d.New = &unstructured.Unstructured{Object: change.Merge(d.Old.Object, d.New.Object, d.held, d.listKeys()...)}
		own(d.New)
	}

	d.keepHeld()
}

// held says whether a change was taken back.
func (d *decider) held(c change.Change) bool {
	_, ok := slices.BinarySearchFunc(d.back, c, change.Compare)

	return ok
}

func (d *decider) listKeys() []change.ListKeys {
	if d.ListKeys == nil {
		return nil
	}

	return []change.ListKeys{d.ListKeys}
}

// evaluate checks a policy's selectors and expressions once per decision.
func (d *decider) evaluate(p *policy.Policy) policy.Verdict {
	v, ok := d.verdicts[p.Name()]
	if !ok {
		v = p.Evaluate(d.input())

		if d.verdicts == nil {
			d.verdicts = map[string]policy.Verdict{}
		}

		d.verdicts[p.Name()] = v

		if v.Problem != nil {
			d.problem(inPolicy(p.Name(), v.Problem))
		}
	}

	return v
}
