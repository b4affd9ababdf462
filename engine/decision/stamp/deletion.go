// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// grantDeletion returns the old object with what its allowed deletion gives:
// allowances for what is deleted because of it, and a managed resource's to delete
// what it stands for; nil where that is nothing. No admission can write that into an
// object that is being deleted.
func grantDeletion(in *input.Inputs, j *rule.Judged, s *Stamped) *unstructured.Unstructured {
	if resource.Deleting(in.Objects.Old) {
		return nil
	}

	deletion := stampOfDeletion(in, s, j.Findings[0])

	s.Object = &unstructured.Unstructured{Object: in.Objects.Old.Object}
	input.CloneMetadata(s.Object)

	changed := dropUnused(in.Objects, s.Object, deletion.allowances)

	switch {
	case len(deletion.allowances) > 0 && !given(in.Objects, deletion.allowances):
		writeAllowances(s, in.Problems, deletion.allowances, stillCarried(in.Objects.Old, in.Places, j, false))
		writeTrace(in.Problems, s.Object, deletion.entries)
	case (j.Refuses() || !noteNamespace(in.Objects, in.Writer, in.Problems, s.Object)) && !changed:
		return nil
	}

	return s.Object
}

// given reports whether the object carries what its deletion gives: recording it may
// itself make a new generation, of which it is not to be recorded again.
func given(o request.Objects, granted []v1alpha1.Allowance) bool {
	have, _ := allowance.Parse(o.Old) // What does not parse is reported when it is written.

	return !slices.ContainsFunc(granted, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(have, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
}

// stampOfDeletion is what an allowed deletion gives; nothing where the object carries
// it already, or where it may go only because its parent does: nothing allows what
// would follow from that.
func stampOfDeletion(in *input.Inputs, s *Stamped, f finding.Finding) stamp {
	if f.Verdict != finding.Allowed || f.Rule == finding.RuleDeleting || in.Manner.Orphans && !resource.IsManaged(in.Objects.Old) {
		return stamp{}
	}

	if _, ok := rule.DeletionGrant(in.Objects, in.Problems); ok && resource.IsManaged(in.Objects.Old) {
		return stamp{}
	}

	return stampOf(in, s, in.Objects.Old, f, max(resource.Generation(in.Objects.Old), 1))
}

// stampOfAnnounced is what an announced deletion gives, judged as what it is. False
// where none is announced that is allowed: what was granted before is taken back.
func stampOfAnnounced(in *input.Inputs) (stamp, bool) {
	if !in.Manner.Announced {
		return stamp{}, false
	}

	deletion := in.AsDeletion()

	found := rule.Judge(deletion)
	if !found.Allowed() {
		return stamp{}, false
	}

	return stampOfDeletion(deletion, &Stamped{}, found.Findings[0]), true
}

// ofAnnounced reports whether an allowance is for a deletion that Crossplane announces,
// which ends once it no longer does. One that follows from the deletion of the parent
// it never announced, and that does not end: Crossplane is still at what it saw before.
func ofAnnounced(a v1alpha1.Allowance) bool {
	return allowance.OfDeletion(a) && a.Source.From == ""
}

// noteNamespace has the decision's object say who deletes a namespace, though
// nothing is granted by that: what stays in it is not to be put down to the
// controller that does the work. False where it says so already, and of anything else.
func noteNamespace(o request.Objects, by request.Writer, problems *request.Problems, object *unstructured.Unstructured) bool {
	if o.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
		return false
	}

	entry := v1alpha1.TraceEntry{
		Field: v1alpha1.MutationDelete, Generation: resource.Generation(o.Old), Initiator: by.User.Name,
		Trace: []v1alpha1.Hop{{
			Kind: o.Old.GetKind(), Name: resource.Name(o.Old), Generation: resource.Generation(o.Old), Field: v1alpha1.MutationDelete,
		}},
	}

	have, _ := allowance.ParseTrace(object) // What does not parse is reported when it is written.
	if slices.ContainsFunc(have, func(e v1alpha1.TraceEntry) bool { return e.Field == entry.Field && e.Initiator == entry.Initiator }) {
		return false
	}

	writeTrace(problems, object, []v1alpha1.TraceEntry{entry})

	return true
}

// dropUnused takes from the object what an earlier deletion gave that was not
// made, and that this one does not give. A managed resource retains it, for its
// first deletion opens its gate and is refused. True where there was any.
func dropUnused(o request.Objects, object *unstructured.Unstructured, granted []v1alpha1.Allowance) bool {
	have, err := allowance.Parse(object)
	if err != nil || resource.IsManaged(o.Old) {
		return false // What does not parse gives nothing either.
	}

	ends := o.ParentGone || o.Parent != nil && resource.Deleting(o.Parent)

	left := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return allowance.ByDeletion(a) && (!ends || a.Source.From == "") &&
			!slices.ContainsFunc(granted, func(b v1alpha1.Allowance) bool { return allowance.SameGrant(a, b) })
	})
	if len(left) == len(have) {
		return false
	}

	for key, value := range withoutDeletion(object, left) {
		input.Annotate(object, key, value)
	}

	return true
}

// withoutDeletion are the annotations of an object that is not deleted after all.
func withoutDeletion(u *unstructured.Unstructured, left []v1alpha1.Allowance) map[string]string {
	out := map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(left)}

	if entries, err := allowance.ParseTrace(u); err == nil {
		out[v1alpha1.AnnotationTrace] = ""

		entries = slices.DeleteFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == v1alpha1.MutationDelete })
		if len(entries) > 0 {
			out[v1alpha1.AnnotationTrace] = allowance.FormatList(entries)
		}
	}

	return out
}

// Unused returns the annotations of an object that was to be deleted a while ago
// and is not: what its deletion would give is taken back. The empty value is of
// one that is removed; nil where there is nothing to take back. What follows from the
// deletion of a parent, and what a managed resource's gate waits for, stays.
func Unused(u *unstructured.Unstructured) map[string]string {
	if resource.Deleting(u) || resource.IsManaged(u) {
		return nil
	}

	have, err := allowance.Parse(u)
	if err != nil {
		return nil
	}

	left := slices.DeleteFunc(slices.Clone(have), func(a v1alpha1.Allowance) bool {
		return allowance.ByDeletion(a) && a.Source.From == ""
	})
	if len(left) == len(have) {
		return nil
	}

	return withoutDeletion(u, left)
}
