// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authority answers who may: whether a policy's expressions hold for a request, whether its subjects, bindings and
// permissions let the user initiate a change, and how many people have to approve.
//
// Its files:
//   - authority.go: the selectors and expressions of policies, evaluated once for a request, with their CEL cost ([Authority.Evaluate])
//   - binding.go: who may initiate by a policy ([Authority.MayInitiate]): subjects, Permissions, AllowanceBindings; who is let by none
//     ([Authority.Forbids]); the same as text
//   - permission.go: the Permission of a policy, asked of the cluster's authorizer ([Authority.HasPermission]); why it is not granted
//   - question.go: what CEL conditions ask the authorizer: the limit, each question once, an authorizer that does not answer
//   - approvers.go: how many people have to approve; the same as text
//   - grant.go: which policies give allowances for an allowed change ([Authority.MayInject]); their allow list as allowances ([Expand])
package authority

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Authority knows which policies are about an object, which of their conditions hold, and who may start a chain by
// them. What it evaluates for one change it remembers for the others. To evaluate may read parameters and ask the authorizer of the
// request, and adds to Ledger and Problems.
type Authority struct {
	// Policies in force, and the Bindings of theirs.
	Policies *policy.Set
	Bindings *policy.Bindings
	// kind of the object, and the namespace that it belongs to.
	kind schema.GroupKind
	home string
	// User who asks, and the settings that say which users act for others.
	User     policy.User
	Settings request.Settings
	// see is the request, which is asked what expressions see of it, for these objects of it, once.
	see interface {
		InputOf(o request.Objects) expression.Input
	}
	Objects request.Objects
	raw     expression.Input
	seen    bool
	// before is the old object as expressions are to see it; nil for the old object.
	before *unstructured.Unstructured

	evaluations map[evaluated]policy.Evaluation
	ofBindings  map[boundBefore]policy.Evaluation

	// Ledger is of all that is decided by the request, whichever version of the object it is about.
	Ledger *Ledger
	// Problems are inputs that cannot be used.
	Problems *request.Problems
}

// evaluated is a policy by name, where a chain starts or below, and before which old object.
type evaluated struct {
	policy string
	below  bool
	before *unstructured.Unstructured
}

// boundBefore is a binding, and before which old object it is evaluated.
type boundBefore struct {
	binding *policy.Binding
	before  *unstructured.Unstructured
}

// Ledger collects what is asked and used by all that is decided by one request.
type Ledger struct {
	// Problems are inputs that cannot be used.
	Problems request.Problems
	// Asked is what the cluster's authorizer was asked.
	Asked permissions
	// Costs are those of policies' expressions, and bindings what those of bindings used.
	Costs    []Cost
	bindings bindingCosts
}

// New is that of a request, for objects of it.
func New(req *request.Request, o request.Objects, by request.Writer, ledger *Ledger) *Authority {
	ledger.Asked.authorizer = req.Authorizer

	return &Authority{
		Policies: req.Basis.Policies, Bindings: req.Basis.Bindings, User: by.User, Settings: req.Basis.Settings, see: req,
		Objects: o, kind: o.GroupKind(), home: o.Home(), Ledger: ledger, Problems: &ledger.Problems,
	}
}

// Of is the authority for other objects of the request, such as another version of the new one.
func (auth *Authority) Of(o request.Objects) *Authority {
	out := *auth
	out.Objects, out.kind, out.home = o, o.GroupKind(), o.Home()
	out.seen, out.before, out.evaluations, out.ofBindings = false, nil, nil, nil

	return &out
}

// InShadow is the authority were a set of policies in force. What fails for it has not failed for what is enforced.
func (auth *Authority) InShadow(set *policy.Set) *Authority {
	asked := auth.Ledger.Asked
	asked.answers = maps.Clone(asked.answers)
	asked.questions = questions{answers: maps.Clone(asked.questions.answers)}

	out := auth.Of(auth.Objects)
	out.Policies, out.Ledger = set, &Ledger{Asked: asked}
	out.Problems = &out.Ledger.Problems

	return out
}

// MadeAgain is the authority for changes that are made once more: before these the object was as it was before. What
// either has evaluated the other one remembers.
func (auth *Authority) MadeAgain(before *unstructured.Unstructured) *Authority {
	if auth.evaluations == nil {
		auth.evaluations = map[evaluated]policy.Evaluation{}
	}

	if auth.ofBindings == nil {
		auth.ofBindings = map[boundBefore]policy.Evaluation{}
	}

	out := *auth
	out.before = before

	return &out
}

// RawInput is what selectors and conditions of Enforcements see.
func (auth *Authority) RawInput() expression.Input {
	if !auth.seen {
		auth.raw, auth.seen = auth.see.InputOf(auth.Objects), true
	}

	return auth.raw
}

// Input is what expressions of policies see.
func (auth *Authority) Input() expression.Input {
	in := auth.RawInput()
	in.Home = auth.home

	if auth.before != nil {
		in.OldObject = auth.before.Object
	}

	if auth.Objects.WithNamespace {
		in.Parent = nil
	}

	if ask := in.Asking; ask != nil {
		in.Asking = func() expression.Asking {
			out := ask()
			out.Authorizer = inquirer{&auth.Ledger.Asked, auth.Problems}

			return out
		}
	}

	return in
}

// Evaluate checks a policy's selectors and expressions where a chain starts, once.
func (auth *Authority) Evaluate(p *policy.Policy) policy.Evaluation {
	return auth.once(p, evaluated{policy: p.Name(), before: auth.before})
}

// EvaluateFor checks them for a change that is allowed. Where a window led to it, as where the
// parent did, no user has started a chain.
func (auth *Authority) EvaluateFor(p *policy.Policy, f finding.Finding) policy.Evaluation {
	if !f.Cause.Propagated && f.Rule != finding.RuleUpgrade {
		return auth.Evaluate(p)
	}

	return auth.once(p, evaluated{policy: p.Name(), below: true, before: auth.before})
}

func (auth *Authority) once(p *policy.Policy, key evaluated) policy.Evaluation {
	v, ok := auth.evaluations[key]
	if ok {
		return v
	}

	v = auth.withinQuestions(func() policy.Evaluation {
		if key.below {
			return p.EvaluateBelow(auth.Input())
		}

		return p.Evaluate(auth.Input())
	})

	if auth.evaluations == nil {
		auth.evaluations = map[evaluated]policy.Evaluation{}
	}

	auth.evaluations[key] = v

	if v.Cost > 0 {
		auth.Ledger.Costs = append(auth.Ledger.Costs, Cost{Policy: p.Name(), Units: v.Cost})
	}

	if v.Problem != nil {
		auth.Problems.Add(&expression.EvaluationError{
			Kind: v1alpha1.KindPolicy, Name: p.Name(), Err: fmt.Errorf("policy %q: %w", p.Name(), v.Problem),
		})
	}

	return v
}

// Cost is what the expressions of a policy cost.
type Cost struct {
	// Policy by name.
	Policy string
	// Units are CEL's, as Kubernetes counts them: the same for the same input, wherever and
	// whenever it is evaluated. A policy may spend [expression.CostLimit].
	Units uint64
}
