// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// An authority knows which policies are about an object, which of their conditions hold, and who may start a chain by
// them. What it evaluates for one change it remembers for the others.
type authority struct {
	// Policies in force, and the Bindings of theirs.
	Policies *policy.Set
	Bindings *policy.Bindings
	// kind of the object, and the namespace that it belongs to.
	kind schema.GroupKind
	home string
	// user who asks, and the settings that say which users act for others.
	user     policy.User
	settings Settings
	// see is asked what expressions see of the request, for these objects of it, once.
	see  interface{ inputOf(o objects) policy.Input }
	o    objects
	raw  policy.Input
	seen bool
	// before is the old object as expressions are to see it; nil for the old object.
	before *unstructured.Unstructured

	evaluations map[evaluated]policy.Evaluation
	ofBindings  map[boundBefore]policy.Evaluation

	// ledger is of all that is decided by the request, whichever version of the object it is about.
	ledger *ledger
	// problems are inputs that cannot be used.
	problems *problems
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

// A ledger collects what is asked and used by all that is decided by one request.
type ledger struct {
	// problems are inputs that cannot be used.
	problems problems
	// asked is what the cluster's authorizer was asked.
	asked permissions
	// costs are those of policies' expressions, and bindings what those of bindings used.
	costs    []Cost
	bindings bindingCosts
}

// newAuthority is that of a request, for objects of it.
func newAuthority(req *Request, o objects, by writer, ledger *ledger) *authority {
	ledger.asked.authorizer = req.Authorizer

	return &authority{
		Policies: req.Basis.Policies, Bindings: req.Basis.Bindings, user: by.User, settings: req.Basis.Settings, see: req,
		o: o, kind: o.groupKind(), home: o.home(), ledger: ledger, problems: &ledger.problems,
	}
}

// of is the authority for other objects of the request, such as another version of the new one.
func (auth *authority) of(o objects) *authority {
	out := *auth
	out.o, out.kind, out.home = o, o.groupKind(), o.home()
	out.seen, out.before, out.evaluations, out.ofBindings = false, nil, nil, nil

	return &out
}

// inShadow is the authority were a set of policies in force. What fails for it has not failed for what is enforced.
func (auth *authority) inShadow(set *policy.Set) *authority {
	asked := auth.ledger.asked
	asked.answers = maps.Clone(asked.answers)
	asked.questions = questions{answers: maps.Clone(asked.questions.answers)}

	out := auth.of(auth.o)
	out.Policies, out.ledger = set, &ledger{asked: asked}
	out.problems = &out.ledger.problems

	return out
}

// madeAgain is the authority for changes that are made once more: before these the object was as it was before. What
// either has evaluated the other one remembers.
func (auth *authority) madeAgain(before *unstructured.Unstructured) *authority {
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

// rawInput is what selectors and conditions of Enforcements see.
func (auth *authority) rawInput() policy.Input {
	if !auth.seen {
		auth.raw, auth.seen = auth.see.inputOf(auth.o), true
	}

	return auth.raw
}

// input is what expressions of policies see.
func (auth *authority) input() policy.Input {
	in := auth.rawInput()
	in.Home = auth.home

	if auth.before != nil {
		in.OldObject = auth.before.Object
	}

	if auth.o.WithNamespace {
		in.Parent = nil
	}

	if ask := in.Asking; ask != nil {
		in.Asking = func() policy.Asking {
			out := ask()
			out.Authorizer = inquirer{&auth.ledger.asked, auth.problems}

			return out
		}
	}

	return in
}

// evaluate checks a policy's selectors and expressions where a chain starts, once.
func (auth *authority) evaluate(p *policy.Policy) policy.Evaluation {
	return auth.once(p, evaluated{policy: p.Name(), before: auth.before})
}

// evaluateFor checks them for a change that is allowed. Where a window led to it, as where the
// parent did, no user has started a chain.
func (auth *authority) evaluateFor(p *policy.Policy, f Finding) policy.Evaluation {
	if !f.cause.propagated && f.Rule != RuleUpgrade {
		return auth.evaluate(p)
	}

	return auth.once(p, evaluated{policy: p.Name(), below: true, before: auth.before})
}

func (auth *authority) once(p *policy.Policy, key evaluated) policy.Evaluation {
	v, ok := auth.evaluations[key]
	if ok {
		return v
	}

	v = auth.withinQuestions(func() policy.Evaluation {
		if key.below {
			return p.EvaluateBelow(auth.input())
		}

		return p.Evaluate(auth.input())
	})

	if auth.evaluations == nil {
		auth.evaluations = map[evaluated]policy.Evaluation{}
	}

	auth.evaluations[key] = v

	if v.Cost > 0 {
		auth.ledger.costs = append(auth.ledger.costs, Cost{Policy: p.Name(), Units: v.Cost})
	}

	if v.Problem != nil {
		auth.problems.add(&policy.EvaluationError{
			Kind: policy.KindPolicy, Name: p.Name(), Err: fmt.Errorf("policy %q: %w", p.Name(), v.Problem),
		})
	}

	return v
}
