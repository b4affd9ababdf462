// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// decider holds what one decision needs more than once.
type decider struct {
	Request

	parentAllowances []v1alpha1.Allowance
	verdicts         map[string]policy.Verdict
	decision         Decision
}

// Decide judges a request. The request and its objects are not modified.
func Decide(req Request) Decision {
	d := &decider{Request: req, verdicts: map[string]policy.Verdict{}}

	// 1. Take what only Kausality writes from the old object.
	d.protect()

	// 2. Read what the parent allows.
	d.readParent()

	// 3. Judge every gated change.
	for _, c := range d.gatedChanges() {
		d.decision.Findings = append(d.decision.Findings, d.partOfCreation(d.judge(c)))
	}

	// 4. Take back what is not allowed, where that is the action.
	d.decision.Action = d.action()
	d.hold()
	d.warn()

	// 5. Stamp why, and what may follow.
	if d.New != nil {
		d.stamp()
		d.decision.Object = d.New
	}

	return d.decision
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

// action is what to do about unallowed changes.
func (d *decider) action() v1alpha1.ValidationAction {
	switch {
	case d.Action != "":
		return d.Action
	case d.Old != nil && resource.BoundToClaim(d.Old):
		return v1alpha1.ActionHold
	default:
		return ""
	}
}

// hold puts unallowed changes back to their old value.
func (d *decider) hold() {
	if d.decision.Action != v1alpha1.ActionHold || d.Operation != OperationUpdate {
		return
	}

	unallowed := map[string]Finding{}

	for _, f := range d.decision.Findings {
		if f.Verdict == Unallowed {
			unallowed[f.Change.Field] = f
			d.decision.Held = append(d.decision.Held, HeldChange(f))
		}
	}

	if len(unallowed) > 0 {
		d.New = &unstructured.Unstructured{Object: change.Merge(d.Old.Object, d.New.Object, func(c change.Change) bool {
			_, ok := unallowed[c.Field]

			return ok
		})}
	}

	d.keepHeld()
}

// evaluate checks a policy's selectors and expressions once per decision.
func (d *decider) evaluate(p *policy.Policy) policy.Verdict {
	v, ok := d.verdicts[p.Name()]
	if !ok {
		v = p.Evaluate(d.input())
		d.verdicts[p.Name()] = v

		if v.Problem != nil {
			d.problem(inPolicy(p.Name(), v.Problem))
		}
	}

	return v
}
