// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// terms are what the policies whose allowances hold a gate open say of it, all
// taken together.
type terms struct {
	settle       time.Duration
	maxOpen      time.Duration
	closeOverdue bool
	// conditions show by themselves whether what their policies allowed is in
	// the external system, ordered by policy.
	conditions []condition
}

type condition struct {
	policy string
	gate   *policy.Gate
}

// underWay returns the allowances that hold a gate open.
func underWay(rec *v1alpha1.GateRecord) []v1alpha1.Allowance {
	if rec == nil {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(rec.Allowances), func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(management.Acting(a.Mutations), func(action string) bool { return slices.Contains(rec.Actions, action) })
	})
}

// MaxOpen returns how long a gate may be open, as it is recorded: the least of
// what the policies say whose allowances hold it open, and the options where
// they say nothing. 0 is for ever.
func MaxOpen(rec *v1alpha1.GateRecord, opts Options) time.Duration {
	return managed{record: rec}.terms(limitsOf(opts)).maxOpen
}

// terms returns the terms of the gate as it is recorded. Each policy counts with
// what it says and, where it does not, with the options.
func (m managed) terms(limits limits) terms {
	var (
		names []string
		out   terms
	)

	for _, a := range underWay(m.record) {
		if !slices.Contains(names, a.Policy) {
			names = append(names, a.Policy)
		}
	}

	if len(names) == 0 {
		names = []string{""}
	}

	slices.Sort(names)

	for i, name := range names {
		one := limits.termsOf(name)
		if i == 0 {
			out = one

			continue
		}

		out.settle = max(out.settle, one.settle)
		out.closeOverdue = out.closeOverdue || one.closeOverdue
		out.conditions = append(out.conditions, one.conditions...)

		if out.maxOpen <= 0 || one.maxOpen > 0 && one.maxOpen < out.maxOpen {
			out.maxOpen = one.maxOpen
		}
	}

	return out
}

// termsOf returns the terms of one policy; empty for none.
func (l limits) termsOf(name string) terms {
	out := terms{settle: l.settle, maxOpen: l.maxOpen, closeOverdue: l.closeOverdue}
	if name == "" || l.policy == nil {
		return out
	}

	g := l.policy(name)
	if g == nil {
		return out
	}

	if g.Settle != nil {
		out.settle = *g.Settle
	}

	if g.MaxOpen != nil {
		out.maxOpen = *g.MaxOpen
	}

	if g.WhenOverdue != "" {
		out.closeOverdue = g.WhenOverdue == v1alpha1.OverdueClose
	}

	if g.CloseWhen != nil || g.Broken != nil {
		out.conditions = []condition{{policy: name, gate: g}}
	}

	return out
}

// unmet returns what is missing until all conditions hold. One that cannot be
// evaluated does not.
func (t terms) unmet(object map[string]any) lack {
	for _, c := range t.conditions {
		text := fmt.Sprintf("waiting for closeWhen of policy %q to be true", c.policy)

		met, err := false, c.gate.Broken
		if err == nil {
			met, _, err = c.gate.CloseWhen.Eval(expression.Input{Object: object})
		}

		switch {
		case err != nil:
			broken := fmt.Errorf("cannot use closeWhen of policy %q: %w", c.policy, err)
			if c.gate.Broken == nil {
				broken = &expression.EvaluationError{Kind: expression.KindPolicy, Name: c.policy, Err: broken}
			}

			return lack{wait: WaitCondition, text: text, broken: broken}
		case !met:
			return lack{wait: WaitCondition, text: text}
		}
	}

	return lack{}
}

// judged reports whether a policy's own condition shows what it allowed.
func (t terms) judged(name string) bool {
	return slices.ContainsFunc(t.conditions, func(c condition) bool { return c.policy == name })
}
