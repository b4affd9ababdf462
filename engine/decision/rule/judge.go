// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/lack"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Judged is what is found of the changes of a request, and what is done about them.
type Judged struct {
	// Changes of the request, whether they need to be asked for or not; of an update.
	Changes []change.Change
	// Findings on every gated change, sorted by field.
	Findings []finding.Finding
	// Incomplete are those on changes that are made once more and still lack
	// something: they stay as they are stored.
	Incomplete []finding.Finding
	// Action on what is unallowed.
	Action v1alpha1.ValidationAction
	// Whole is the new object with all of its changes.
	Whole *unstructured.Unstructured
}

// Judge judges every change of the request that needs to be asked for.
func Judge(in *input.Inputs) *Judged {
	j := &Judged{Whole: in.Objects.New}

	switch in.Objects.Operation {
	case request.OperationDelete:
		j.Findings = []finding.Finding{Find(in, change.Delete())}
	case request.OperationCreate:
		j.Findings = judgeCreation(in)
	case request.OperationUpdate:
		j.Changes = change.Between(in.Objects.Old.Object, in.Objects.New.Object)
		j.Findings = judgeUpdate(in, j.Changes)

		again, incomplete := judgeRepeated(in)
		j.Findings, j.Incomplete = append(j.Findings, again...), incomplete

		slices.SortFunc(j.Findings, func(a, b finding.Finding) int { return change.Order(a.Change, b.Change) })
	}

	j.Action = ActionOnUnallowed(in, j.Findings)

	return j
}

// judgeUpdate judges what is changed of an object.
func judgeUpdate(in *input.Inputs, changes []change.Change) []finding.Finding {
	var out []finding.Finding

	for _, c := range changes {
		if Exempt(in, c) || input.Wished(in.Objects, in.Desired, c) {
			continue
		}

		// Taking back needs nobody's leave; who has it is granted what results.
		if f := Find(in, c); f.Verdict == finding.Allowed || !input.TakesBack(in.Objects, in.Places, in.Earlier, c) {
			out = append(out, f)
		}
	}

	if c, ok := ChangeOfPolicies(in.Objects); ok {
		out = append(out, Find(in, c))
	}

	return out
}

// judgeCreation judges a new object. Its fields are part of its creation: who
// may make it may fill it in. Those that policies name count by themselves, for
// what may follow from them, unless the creation itself is unallowed.
func judgeCreation(in *input.Inputs) []finding.Finding {
	created := Find(in, change.Create())
	out := []finding.Finding{created}

	if created.Verdict == finding.Unallowed || len(in.Authority.Policies.For(in.Objects.GroupKind())) == 0 {
		return out
	}

	for _, c := range change.Between(nil, in.Objects.New.Object) {
		if !isNamed(in.Authority.Policies, in.Objects.GroupKind(), c) || Exempt(in, c) {
			continue
		}

		f := Find(in, c)

		switch {
		case f.Verdict == finding.Allowed:
			out = append(out, f)
		case created.Verdict == finding.Allowed:
			f = created
			f.Change = c
			out = append(out, f)
		}
	}

	return out
}

// judgeRepeated judges the changes that the request makes once more. Those that still
// lack something stay as they are.
func judgeRepeated(in *input.Inputs) (allowed, incomplete []finding.Finding) {
	for _, c := range in.Earlier.Repeated {
		f := JudgeRepetition(in, c)

		switch f.Verdict {
		case finding.Allowed:
			allowed = append(allowed, f)
		case finding.Unallowed:
			incomplete = append(incomplete, f)
		case finding.Ungoverned: // Whoever takes the policy away need not know of it.
		}
	}

	return allowed, incomplete
}

// JudgeRepetition judges one of these.
func JudgeRepetition(in *input.Inputs, c change.Change) finding.Finding {
	f := Find(in.MadeAgain(), c)
	f.Repeated = true

	return f
}

// Allowed reports whether every change is allowed or not governed.
func (j *Judged) Allowed() bool { return allAllowed(j.Findings) }

func allAllowed(findings []finding.Finding) bool {
	return !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Verdict == finding.Unallowed })
}

// Initiated reports whether the user makes any change that they may make.
func (j *Judged) Initiated() bool {
	return slices.ContainsFunc(j.Findings, func(f finding.Finding) bool { return f.Rule == finding.RuleInitiate })
}

// TakenBack reports whether a change is taken back.
func TakenBack(back []change.Change, c change.Change) bool {
	_, ok := slices.BinarySearchFunc(back, c, change.Compare)

	return ok
}

// ActionOnUnallowed is what to do about unallowed changes: the strictest of what
// the Enforcements say that govern the object, and of what is held without one.
func ActionOnUnallowed(in *input.Inputs, findings []finding.Finding) v1alpha1.ValidationAction {
	switch {
	case in.Manner.Caller == request.Function:
		return in.Manner.Action
	case request.StaysInNamespace(in.Objects, in.Writer) || request.StaysWithClaim(in.Objects, in.Writer) ||
		request.OpenForAnother(in.Objects, in.Writer):
		return v1alpha1.ActionDeny
	case request.DeletesForOthers(in.Writer.User):
		return ""
	}

	strictest := v1alpha1.ValidationAction("")
	if in.Objects.Old != nil && resource.BoundToClaim(in.Objects.Old) {
		strictest = v1alpha1.ActionHold
	}

	if request.Guarded(in.Manner, in.External) { // A gate holds at the door.
		strictest = v1alpha1.ActionHold
	}

	unnamed := onlyUnnamed(in.Objects, in.Writer, in.Authority, in.Enforced, in.Windows, findings)

	for _, e := range in.Enforced.Governing {
		if unnamed && e.IgnoresUnnamed() {
			continue
		}

		if a := input.ActionOf(e); enforcement.Strictness(a) > enforcement.Strictness(strictest) {
			strictest = a
		}
	}

	return strictest
}

// onlyUnnamed reports whether something is unallowed, and all that is so is of fields
// that no policy names, and that no Enforcement depends on.
func onlyUnnamed(
	o request.Objects, by request.Writer, auth *authority.Authority, enforced input.Enforced, windows input.Windows,
	findings []finding.Finding,
) bool {
	return !allAllowed(findings) && !slices.ContainsFunc(findings, func(f finding.Finding) bool {
		return f.Verdict == finding.Unallowed && (!lack.Unnamed(o, by, auth, enforced, f.Change) ||
			frees(o, by, auth.Policies, enforced, windows, f.Change))
	})
}

// ChangeOfPolicies is the change of the actions that a Composition asks for in the management policies of a managed resource: with more of
// them its provider would do more outside than anybody asked for, and with fewer leave more as it is, or behind. That has to be asked
// for as a change of the field would be, which itself is the gate's. False where there is none.
func ChangeOfPolicies(o request.Objects) (change.Change, bool) {
	const asks = v1alpha1.AnnotationDesiredPolicies

	if o.Old == nil || o.New == nil || resource.Annotation(o.Old, asks) == resource.Annotation(o.New, asks) || !resource.IsManaged(o.New) {
		return change.Change{}, false
	}

	was, wasErr := management.ParseDesired(o.Old)
	is, isErr := management.ParseDesired(o.New)

	if wasErr != nil { // Perhaps it asked for all.
		was.Policies = []string{management.ActionAll}
	}

	before := was.Policies
	if len(before) == 0 {
		before = was.Before // It was paused.
	}

	// Nothing is known of what was asked for before; and paused, a resource is neither changed nor deleted nor orphaned.
	if isErr != nil || before == nil || len(is.Policies) == 0 || management.Same(management.Acting(before), management.Acting(is.Policies)) {
		return change.Change{}, false
	}

	at := change.Path{fieldpath.Field("spec"), fieldpath.Field("managementPolicies")}

	return change.Change{Path: at, Field: at.String(), From: resource.Values(before), To: resource.Values(is.Policies)}, true
}

// Refuses reports whether an unallowed change is to be refused.
func (j *Judged) Refuses() bool { return j.Action == v1alpha1.ActionDeny && !j.Allowed() }
