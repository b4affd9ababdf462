// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// judged is what is found of the changes of a request, and what is done about them.
type judged struct {
	// changes of the request, whether they need to be asked for or not; of an update.
	changes []change.Change
	// findings on every gated change, sorted by field.
	findings []Finding
	// incomplete are those on changes that are made once more and still lack
	// something: they stay as they are stored.
	incomplete []Finding
	// action on what is unallowed.
	action v1alpha1.ValidationAction
	// whole is the new object with all of its changes.
	whole *unstructured.Unstructured
	// back are the changes that are taken back, in order, and held what is recorded
	// of them.
	back []change.Change
	held []v1alpha1.HeldChange
	// next are the places at which changes are held now.
	next allowance.Withheld
}

// judge judges every change of the request that needs to be asked for.
func judge(in *inputs) *judged {
	j := &judged{whole: in.o.New}

	switch in.o.Operation {
	case OperationDelete:
		j.findings = []Finding{find(in, change.Delete())}
	case OperationCreate:
		j.findings = judgeCreation(in)
	case OperationUpdate:
		j.changes = change.Between(in.o.Old.Object, in.o.New.Object)
		j.findings = judgeUpdate(in, j.changes)

		again, incomplete := judgeRepeated(in)
		j.findings, j.incomplete = append(j.findings, again...), incomplete

		slices.SortFunc(j.findings, func(a, b Finding) int { return change.Order(a.Change, b.Change) })
	}

	j.action = actionOnUnallowed(in, j.findings)

	return j
}

// judgeUpdate judges what is changed of an object.
func judgeUpdate(in *inputs, changes []change.Change) []Finding {
	var out []Finding

	for _, c := range changes {
		if exempt(in, c) || wished(in.o, in.desired, c) {
			continue
		}

		// Taking back needs nobody's leave; who has it is granted what results.
		if f := find(in, c); f.Verdict == Allowed || !takesBack(in.o, in.places, in.earlier, c) {
			out = append(out, f)
		}
	}

	if c, ok := changeOfPolicies(in.o); ok {
		out = append(out, find(in, c))
	}

	return out
}

// judgeCreation judges a new object. Its fields are part of its creation: who
// may make it may fill it in. Those that policies name count by themselves, for
// what may follow from them, unless the creation itself is unallowed.
func judgeCreation(in *inputs) []Finding {
	created := find(in, change.Create())
	out := []Finding{created}

	if created.Verdict == Unallowed || len(in.auth.Policies.For(in.o.groupKind())) == 0 {
		return out
	}

	for _, c := range change.Between(nil, in.o.New.Object) {
		if !isNamed(in.auth.Policies, in.o.groupKind(), c) || exempt(in, c) {
			continue
		}

		f := find(in, c)

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
func judgeRepeated(in *inputs) (allowed, incomplete []Finding) {
	for _, c := range in.earlier.repeated {
		f := judgeRepetition(in, c)

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
func judgeRepetition(in *inputs, c change.Change) Finding {
	f := find(in.madeAgain(), c)
	f.repeated = true

	return f
}

// allowed reports whether every change is allowed or not governed.
func (j *judged) allowed() bool { return allAllowed(j.findings) }

func allAllowed(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Verdict == Unallowed })
}

// initiated reports whether the user makes any change that they may make.
func (j *judged) initiated() bool {
	return slices.ContainsFunc(j.findings, func(f Finding) bool { return f.Rule == RuleInitiate })
}

// takenBack reports whether a change is taken back.
func (j *judged) takenBack(c change.Change) bool { return takenBack(j.back, c) }

func takenBack(back []change.Change, c change.Change) bool {
	_, ok := slices.BinarySearchFunc(back, c, change.Compare)

	return ok
}
