// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// grantDeletion returns, as the decision's object, the old one with what its
// allowed deletion gives: allowances for what is deleted because of it, and a
// managed resource's to delete what it stands for. No admission can write that
// into an object that is being deleted.
func (d *decider) grantDeletion() {
	if resource.Deleting(d.Old) {
		return
	}

	granted, entries := d.deletionGives(d.decision.Findings[0])

	d.New = &unstructured.Unstructured{Object: d.Old.Object}
	own(d.New)

	changed := d.dropUnused(granted)

	switch {
	case len(granted) > 0 && !d.given(granted):
		d.writeAllowances(granted)
		d.writeTrace(entries)
	case !d.noteNamespace() && !changed:
		d.New = nil
	}

	d.decision.Object = d.New
}

// given says whether the object carries what its deletion gives: recording it may
// itself make a new generation, of which it is not to be recorded again.
func (d *decider) given(granted []v1alpha1.Allowance) bool {
	have, _ := allowance.Parse(d.Old) // What does not parse is reported when it is written.

	return !slices.ContainsFunc(granted, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(have, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
}

// deletionGives returns the allowances that an allowed deletion gives, and its
// trace; none where the object carries them already, or where it may go only
// because its parent does: nobody asked for what would follow from that.
func (d *decider) deletionGives(f Finding) ([]v1alpha1.Allowance, []v1alpha1.TraceEntry) {
	if f.Verdict != Allowed || f.Rule == RuleDeleting || d.Orphans && !resource.IsManaged(d.Old) {
		return nil, nil
	}

	if _, ok := d.deletionGrant(); ok && resource.IsManaged(d.Old) {
		return nil, nil
	}

	generation := max(resource.Generation(d.Old), 1)
	hop, granted := d.inject(d.Old, f, generation)
	d.attest(f.cause.trace...)
	d.attest(hop)

	return allowance.Merge(granted, external(d.Old, f, hop)), []v1alpha1.TraceEntry{{
		Field: v1alpha1.MutationDelete, Generation: generation,
		Initiator: f.cause.initiator, Trace: allowance.ExtendTrace(f.cause.trace, hop),
	}}
}

// announce reads whether Crossplane announces that it will delete a managed
// resource: it goes on applying it, with the allowance its deletion gives, until
// the gate is open for that. [Decide] gives the composition function what to
// announce.
func (d *decider) announce() {
	if d.Operation != OperationUpdate || d.User.Name != d.Settings.Crossplane || !resource.IsManaged(d.Old) {
		return
	}

	d.composing = true

	list, err := allowance.Parse(d.New)
	d.announced = err == nil && slices.ContainsFunc(list, allowance.OfDeletion)
}

// judgeAnnounced judges an announced deletion as what it is.
func (d *decider) judgeAnnounced() (granted []v1alpha1.Allowance, entries []v1alpha1.TraceEntry) {
	if !d.announced {
		return nil, nil
	}

	asked := &decider{Request: d.Request}
	asked.Operation, asked.New = OperationDelete, nil
	asked.readParent()
	asked.readEnforcements()
	asked.judgeAll()

	f := asked.decision.Findings[0]
	if f.Verdict != Allowed {
		d.announced = false // What was granted before is taken back.

		return nil, nil
	}

	return asked.deletionGives(f)
}

// calledOff says whether an allowance is for a deletion that Crossplane no
// longer announces. One that follows from the deletion of the parent it never
// announced, and that does not end: Crossplane is still at what it saw before.
func (d *decider) calledOff(a v1alpha1.Allowance) bool {
	n := len(a.Trace)
	inherited := n > 1 && a.Trace[n-2].Field == v1alpha1.MutationDelete

	return d.composing && !d.announced && !inherited && allowance.OfDeletion(a)
}

// deletionGrant is the managed resource's own allowance to delete what it
// stands for, given because it is to be deleted: one that lets it be made anew for
// a field opens no gate for Delete, and so takes the place of none.
func (d *decider) deletionGrant() (v1alpha1.Allowance, bool) {
	list, err := allowance.Parse(d.Old)
	if err != nil {
		d.problem(inObject(d.Old, err))
	}

	for _, a := range list {
		if allowance.OfDeletion(a) && !allowance.Consumed(d.Old, a) && slices.Contains(gate.Acting(a.Mutations), gate.ActionDelete) {
			return a, true
		}
	}

	return v1alpha1.Allowance{}, false
}
