// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	apiservercel "k8s.io/apiserver/pkg/apis/cel"
)

// Budget is what some expressions may cost together, in CEL's units. Once it is used up
// nothing more is evaluated of it.
type Budget struct {
	left uint64
	// cost is what all cost, also what was over the budget.
	cost uint64
	// over is the cause where it is used up, and used whether it is.
	over error
	used bool
}

// errCost is the cause when nothing is left of the budget of a policy, and errBindingCost
// of that of bindings.
var (
	errCost        = fmt.Errorf("the policy's expressions cost more than %d in all", apiservercel.RuntimeCELCostBudget)
	errBindingCost = fmt.Errorf("the AllowanceBindings that name the user cost more than %d in all", apiservercel.RuntimeCELCostBudget)
)

// CostLimit is what the expressions of one policy may cost together, in CEL's units.
const CostLimit = apiservercel.RuntimeCELCostBudget

// CostBuckets are limits by which costs are counted: each ten times the one before, up to
// [CostLimit].
func CostBuckets() []float64 {
	var out []float64
	for limit := 10.0; limit <= CostLimit; limit *= 10 {
		out = append(out, limit)
	}

	return out
}

// NewBudget is Kubernetes' budget for the expressions of one policy.
func NewBudget() *Budget { return &Budget{left: CostLimit, over: errCost} }

// What a binding costs besides its expressions, so that the budget limits how many of them
// one request may have evaluated, and how many parameters read.
const (
	CostOfBinding = apiservercel.RuntimeCELCostBudget / 10_000
	CostOfParams  = apiservercel.RuntimeCELCostBudget / 100
)

// NewBindingBudget is that of all bindings that are evaluated for one request: how many
// there are is for those to say who may make them.
func NewBindingBudget() *Budget {
	return &Budget{left: apiservercel.RuntimeCELCostBudget, over: errBindingCost}
}

// Spent is what all cost, in CEL's units, also what was over the budget.
func (b *Budget) Spent() uint64 { return b.cost }

// Used reports whether the budget is used up.
func (b *Budget) Used() bool { return b.used }

// Eval evaluates an expression. The error is of one that fails, or for which
// nothing is left.
func (b *Budget) Eval(e *Expression, in Input) (bool, error) {
	return b.EvalIn(e, &Activation{Input: &in})
}

// EvalIn evaluates an expression for names that are resolved already. The errors are those of Eval.
func (b *Budget) EvalIn(e *Expression, a *Activation) (bool, error) {
	if b.used {
		return false, b.exceeded(e)
	}

	ok, cost, err := e.eval(a)
	if over := b.Spend(cost); over != nil && err == nil { // What fails has cost as much.
		err = b.exceeded(e)
	}

	return ok && err == nil, err
}

func (b *Budget) exceeded(e *Expression) error {
	return fmt.Errorf("cannot evaluate CEL %q: %w", e, b.over)
}

// Spend takes what an evaluation cost.
func (b *Budget) Spend(cost uint64) error {
	b.cost += cost

	if b.used || cost > b.left {
		b.left, b.used = 0, true

		return b.over
	}

	b.left -= cost

	return nil
}
