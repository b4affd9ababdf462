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
	*facts

	// changes of the request, whether they need to be asked for or not; of an update.
	changes []change.Change
	// before is the old object as expressions are to see it; nil for the old object.
	before *unstructured.Unstructured

	verdicts map[string]policy.Verdict
	windows  []*allowance.Window // Nil until they are looked for.
	repeats  *judge
}

func newJudge(f *facts) *judge { return &judge{facts: f} }

// of judges the changes of the request where another version of the new object is
// asked for.
func (j *judge) of(object *unstructured.Unstructured) *judge {
	return &judge{facts: j.with(object), changes: j.changes}
}

// ofRepeated judges changes that are made once more: before these the object was as
// it was before they were stored.
func (j *judge) ofRepeated() *judge {
	if j.repeats == nil {
		j.repeats = &judge{facts: j.facts, changes: j.changes, before: j.unedited}
	}

	return j.repeats
}

// input is what expressions see.
func (j *judge) input() policy.Input {
	in := j.Request.input()
	if j.before != nil {
		in.OldObject = j.before.Object
	}

	return in
}

// evaluate checks a policy's selectors and expressions, once.
func (j *judge) evaluate(p *policy.Policy) policy.Verdict {
	v, ok := j.verdicts[p.Name()]
	if ok {
		return v
	}

	v = p.Evaluate(j.input())

	if j.verdicts == nil {
		j.verdicts = map[string]policy.Verdict{}
	}

	j.verdicts[p.Name()] = v

	if v.Problem != nil {
		j.problem(&policy.EvaluationError{
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

		slices.SortFunc(out.findings, func(a, b Finding) int { return change.Compare(a.Change, b.Change) })
	}

	out.action = out.actionOnUnallowed()

	return out
}

// judgeUpdate judges what is changed of an object.
func (j *judge) judgeUpdate() []Finding {
	var out []Finding

	for _, c := range j.changes {
		if j.exempt(c) || j.putsBack(c) || j.wished(c) {
			continue
		}

		// Taking back needs nobody's leave; who has it is granted what follows.
		if f := j.find(c); f.Verdict == Allowed || !j.takesBack(c) {
			out = append(out, f)
		}
	}

	if c, ok := j.orphaning(); ok {
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
