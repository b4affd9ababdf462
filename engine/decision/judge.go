// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// A judge judges the changes of a request, by its facts. What it evaluates for one
// change it remembers for the others.
type judge struct {
	gating

	// changes of the request, whether they need to be asked for or not; of an update.
	changes []change.Change
	repeats *judge
}

// What a judge knows, each with what it needs of the one before.
type (
	// evaluator evaluates policies, each once.
	evaluator struct {
		*facts

		// before is the old object as expressions are to see it; nil for the old object.
		before      *unstructured.Unstructured
		evaluations map[evaluated]policy.Evaluation
	}
	// evaluated is a policy by name, where a chain starts or below.
	evaluated struct {
		policy string
		below  bool
	}
	// windows are the UpgradeAllowances that are open for the user and the object.
	windows struct {
		evaluator

		open []*allowance.Window // Nil until they are searched for.
	}
	// subjects are who may make a change, by policies about the object.
	subjects struct {
		windows

		permissions *permissions
		ofBindings  map[*policy.Binding]policy.Evaluation
	}
	// exemptions are the changes that need nobody's asking.
	exemptions struct{ subjects }
	// sources are what had a part in a finding.
	sources struct{ exemptions }
	// gating is what may leave through the gate with a change.
	gating struct{ sources }
)

func newJudge(f *facts) *judge {
	j := &judge{}
	j.facts, j.permissions = f, f.permitted

	return j
}

// of judges the changes of the request where another version of the new object is
// asked for.
func (j *judge) of(object *unstructured.Unstructured) *judge {
	out := newJudge(j.with(object))
	out.changes = j.changes

	return out
}

// ofRepeated judges changes that are made once more: before these the object was as
// it was before they were stored.
func (j *judge) ofRepeated() *judge {
	if j.repeats == nil {
		j.repeats = newJudge(j.facts)
		j.repeats.changes, j.repeats.before = j.changes, j.unedited
	}

	return j.repeats
}

// input is what expressions see.
func (e *evaluator) input() policy.Input {
	in := e.Request.input()
	in.Home = e.home()

	if e.before != nil {
		in.OldObject = e.before.Object
	}

	if e.withNamespace {
		in.Parent = nil
	}

	if in.Asking != nil {
		in.Asking = func() policy.Asking {
			out := e.asking()
			out.Authorizer = inquirer{e}

			return out
		}
	}

	return in
}

// evaluate checks a policy's selectors and expressions where a chain starts, once.
func (e *evaluator) evaluate(p *policy.Policy) policy.Evaluation {
	return e.once(p, evaluated{policy: p.Name()})
}

// evaluateFor checks them for a change that is allowed. Where a window led to it, as where the
// parent did, no user has started a chain.
func (e *evaluator) evaluateFor(p *policy.Policy, f Finding) policy.Evaluation {
	if !f.cause.propagated && f.Rule != RuleUpgrade {
		return e.evaluate(p)
	}

	return e.once(p, evaluated{policy: p.Name(), below: true})
}

func (e *evaluator) once(p *policy.Policy, key evaluated) policy.Evaluation {
	v, ok := e.evaluations[key]
	if ok {
		return v
	}

	v = e.withinQuestions(func() policy.Evaluation {
		if key.below {
			return p.EvaluateBelow(e.input())
		}

		return p.Evaluate(e.input())
	})

	if e.evaluations == nil {
		e.evaluations = map[evaluated]policy.Evaluation{}
	}

	e.evaluations[key] = v
	e.cost(p.Name(), v.Cost)

	if v.Problem != nil {
		e.problem(&policy.EvaluationError{
			Kind: policy.KindPolicy, Name: p.Name(), Err: fmt.Errorf("policy %q: %w", p.Name(), v.Problem),
		})
	}

	return v
}

// judgeAll judges every change of the request that needs to be asked for.
func (j *judge) judgeAll() *judged {
	out := &judged{judge: j}

	switch j.Operation {
	case OperationDelete:
		out.findings = []Finding{j.find(change.Delete())}
	case OperationCreate:
		out.findings = j.judgeCreation()
	case OperationUpdate:
		j.changes = change.Between(j.Old.Object, j.New.Object)
		out.findings = j.judgeUpdate()
		again, incomplete := j.judgeRepeated()
		out.findings, out.incomplete = append(out.findings, again...), incomplete

		slices.SortFunc(out.findings, func(a, b Finding) int { return change.Order(a.Change, b.Change) })
	}

	out.action = out.actionOnUnallowed()

	return out
}

// judgeUpdate judges what is changed of an object.
func (j *judge) judgeUpdate() []Finding {
	var out []Finding

	for _, c := range j.changes {
		if j.exempt(c) || j.wished(c) {
			continue
		}

		// Taking back needs nobody's leave; who has it is granted what results.
		if f := j.find(c); f.Verdict == Allowed || !j.takesBack(c) {
			out = append(out, f)
		}
	}

	if c, ok := j.policies(); ok {
		out = append(out, j.find(c))
	}

	return out
}

// judgeCreation judges a new object. Its fields are part of its creation: who
// may make it may fill it in. Those that policies name count by themselves, for
// what may follow from them, unless the creation itself is unallowed.
func (j *judge) judgeCreation() []Finding {
	created := j.find(change.Create())
	out := []Finding{created}

	if created.Verdict == Unallowed || len(j.Policies.For(j.groupKind())) == 0 {
		return out
	}

	for _, c := range change.Between(nil, j.New.Object) {
		if !j.named(c) || j.exempt(c) {
			continue
		}

		f := j.find(c)

		switch {
		case f.Verdict == Allowed:
			out = append(out, f)
		case created.Verdict == Allowed:
			f = created
			f.Change = c
			out = append(out, f)
		}
	}

	return out
}

// judgeRepeated judges the changes that the request makes once more. Those that still
// lack something stay as they are.
func (j *judge) judgeRepeated() (allowed, incomplete []Finding) {
	for _, c := range j.repeated {
		f := j.judgeRepetition(c)

		switch f.Verdict {
		case Allowed:
			allowed = append(allowed, f)
		case Unallowed:
			incomplete = append(incomplete, f)
		case Ungoverned: // Whoever takes the policy away need not know of it.
		}
	}

	return allowed, incomplete
}

// judgeRepetition judges one of these.
func (j *judge) judgeRepetition(c change.Change) Finding {
	f := j.ofRepeated().find(c)
	f.repeated = true

	return f
}
