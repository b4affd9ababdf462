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

// grantDeletion returns the old object with what its allowed deletion gives:
// allowances for what is deleted because of it, and a managed resource's to delete
// what it stands for; nil where that is nothing. No admission can write that into an
// object that is being deleted.
func grantDeletion(in *inputs, j *judged, s *stamped) *unstructured.Unstructured {
	if resource.Deleting(in.o.Old) {
		return nil
	}

	deletion := stampOfDeletion(in, s, j.findings[0])

	s.object = &unstructured.Unstructured{Object: in.o.Old.Object}
	cloneMetadata(s.object)

	changed := dropUnused(in.o, s.object, deletion.allowances)

	switch {
	case len(deletion.allowances) > 0 && !given(in.o, deletion.allowances):
		writeAllowances(s, in.problems, deletion.allowances, stillCarried(in.o.Old, in.places, j, false))
		writeTrace(in.problems, s.object, deletion.entries)
	case (refuses(j) || !noteNamespace(in.o, in.by, in.problems, s.object)) && !changed:
		return nil
	}

	return s.object
}

// given reports whether the object carries what its deletion gives: recording it may
// itself make a new generation, of which it is not to be recorded again.
func given(o objects, granted []v1alpha1.Allowance) bool {
	have, _ := allowance.Parse(o.Old) // What does not parse is reported when it is written.

	return !slices.ContainsFunc(granted, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(have, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
}

// stampOfDeletion is what an allowed deletion gives; nothing where the object carries
// it already, or where it may go only because its parent does: nothing allows what
// would follow from that.
func stampOfDeletion(in *inputs, s *stamped, f Finding) stamp {
	if f.Verdict != Allowed || f.Rule == RuleDeleting || in.how.orphans && !resource.IsManaged(in.o.Old) {
		return stamp{}
	}

	if _, ok := deletionGrant(in.o, in.problems); ok && resource.IsManaged(in.o.Old) {
		return stamp{}
	}

	return stampOf(in, s, in.o.Old, f, max(resource.Generation(in.o.Old), 1))
}

// stampOfAnnounced is what an announced deletion gives, judged as what it is. False
// where none is announced that is allowed: what was granted before is taken back.
func stampOfAnnounced(in *inputs) (stamp, bool) {
	if !in.how.announced {
		return stamp{}, false
	}

	deletion := in.asDeletion()

	found := judge(deletion)
	if !found.allowed() {
		return stamp{}, false
	}

	return stampOfDeletion(deletion, &stamped{}, found.findings[0]), true
}

// ofAnnounced reports whether an allowance is for a deletion that Crossplane announces,
// which ends once it no longer does. One that follows from the deletion of the parent
// it never announced, and that does not end: Crossplane is still at what it saw before.
func ofAnnounced(a v1alpha1.Allowance) bool {
	return allowance.OfDeletion(a) && a.Source.From == ""
}

// deletionGrant is the managed resource's allowance to delete what it
// stands for, given because it is to be deleted: one that lets it be made anew for
// a field opens no gate for Delete, and so takes the place of none.
func deletionGrant(o objects, problems *problems) (v1alpha1.Allowance, bool) {
	list, err := allowance.Parse(o.Old)
	if err != nil {
		problems.add(inObject(o.Old, err))
	}

	for _, a := range list {
		if allowance.OfDeletion(a) && !allowance.Served(o.Old, a) && slices.Contains(gate.Acting(a.Mutations), gate.ActionDelete) {
			return a, true
		}
	}

	return v1alpha1.Allowance{}, false
}
