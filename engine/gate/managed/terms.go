// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"fmt"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Terms are what the policies whose allowances hold a gate open say of it, all
// taken together.
type Terms struct {
	settle       time.Duration
	MaxOpen      time.Duration
	CloseOverdue bool
	// conditions show by themselves whether what their policies allowed is in
	// the external system, ordered by policy.
	conditions []condition
}

type condition struct {
	policy string
	gate   *policy.Gate
}

// UnderWay returns the allowances that hold a gate open.
func UnderWay(rec *v1alpha1.GateRecord) []v1alpha1.Allowance {
	if rec == nil {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(rec.Allowances), func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(management.Acting(a.Mutations), func(action string) bool { return slices.Contains(rec.Actions, action) })
	})
}

// Terms returns the terms of the gate as it is recorded. Each policy counts with
// what it says and, where it does not, with the options.
func (m Resource) Terms(limits Limits) Terms {
	var (
		names []string
		out   Terms
	)

	for _, a := range UnderWay(m.Record) {
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
		out.CloseOverdue = out.CloseOverdue || one.CloseOverdue
		out.conditions = append(out.conditions, one.conditions...)

		if out.MaxOpen <= 0 || one.MaxOpen > 0 && one.MaxOpen < out.MaxOpen {
			out.MaxOpen = one.MaxOpen
		}
	}

	return out
}

// termsOf returns the terms of one policy; empty for none.
func (l Limits) termsOf(name string) Terms {
	out := Terms{settle: l.Settle, MaxOpen: l.MaxOpen, CloseOverdue: l.CloseOverdue}
	if name == "" || l.Policy == nil {
		return out
	}

	g := l.Policy(name)
	if g == nil {
		return out
	}

	if g.Settle != nil {
		out.settle = *g.Settle
	}

	if g.MaxOpen != nil {
		out.MaxOpen = *g.MaxOpen
	}

	if g.WhenOverdue != "" {
		out.CloseOverdue = g.WhenOverdue == v1alpha1.OverdueClose
	}

	if g.CloseWhen != nil || g.Broken != nil {
		out.conditions = []condition{{policy: name, gate: g}}
	}

	return out
}

// unmet returns what is missing until all conditions hold. One that cannot be
// evaluated does not.
func (t Terms) unmet(object map[string]any) Lack {
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
				broken = &expression.EvaluationError{Kind: v1alpha1.KindPolicy, Name: c.policy, Err: broken}
			}

			return Lack{Wait: WaitCondition, Text: text, Broken: broken}
		case !met:
			return Lack{Wait: WaitCondition, Text: text}
		}
	}

	return Lack{}
}

// judged reports whether a policy's own condition shows what it allowed.
func (t Terms) judged(name string) bool {
	return slices.ContainsFunc(t.conditions, func(c condition) bool { return c.policy == name })
}
