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
func (s *stamper) grantDeletion() *unstructured.Unstructured {
	if resource.Deleting(s.Old) {
		return nil
	}

	deletion := s.stampOfDeletion(s.findings[0])

	s.object = &unstructured.Unstructured{Object: s.Old.Object}
	cloneMetadata(s.object)

	changed := s.dropUnused(deletion.allowances)

	switch {
	case len(deletion.allowances) > 0 && !s.given(deletion.allowances):
		s.writeAllowances(deletion.allowances, false)
		s.writeTrace(deletion.entries)
	case !s.noteNamespace() && !changed:
		return nil
	}

	return s.object
}

// given reports whether the object carries what its deletion gives: recording it may
// itself make a new generation, of which it is not to be recorded again.
func (s *stamper) given(granted []v1alpha1.Allowance) bool {
	have, _ := allowance.Parse(s.Old) // What does not parse is reported when it is written.

	return !slices.ContainsFunc(granted, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(have, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
}

// stampOfDeletion is what an allowed deletion gives; nothing where the object carries
// it already, or where it may go only because its parent does: nothing allows what
// would follow from that.
func (s *stamper) stampOfDeletion(f Finding) stamp {
	if f.Verdict != Allowed || f.Rule == RuleDeleting || s.Orphans && !resource.IsManaged(s.Old) {
		return stamp{}
	}

	if _, ok := s.deletionGrant(); ok && resource.IsManaged(s.Old) {
		return stamp{}
	}

	return s.stampOf(s.Old, f, max(resource.Generation(s.Old), 1))
}

// stampOfAnnounced is what an announced deletion gives, judged as what it is. False
// where none is announced that is allowed: what was granted before is taken back.
func (s *stamper) stampOfAnnounced() (stamp, bool) {
	if !s.announced {
		return stamp{}, false
	}

	f := s.asDeletion()
	g := newJudge(f).judgeAll()

	if !g.allowed() {
		return stamp{}, false
	}

	return (&stamper{judged: g}).stampOfDeletion(g.findings[0]), true
}

// asDeletion are the facts of a request to delete the object instead.
func (f *facts) asDeletion() *facts {
	out := &facts{grants: f.grants, permitted: f.permitted}
	out.Operation, out.New, out.problems = OperationDelete, nil, &problems{}
	out.readEnforcements()

	return out
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
func (g *grants) deletionGrant() (v1alpha1.Allowance, bool) {
	list, err := allowance.Parse(g.Old)
	if err != nil {
		g.problem(inObject(g.Old, err))
	}

	for _, a := range list {
		if allowance.OfDeletion(a) && !allowance.Served(g.Old, a) && slices.Contains(gate.Acting(a.Mutations), gate.ActionDelete) {
			return a, true
		}
	}

	return v1alpha1.Allowance{}, false
}
