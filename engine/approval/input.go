// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Input is what becomes of the ChangeApprovals of one PendingChange follows from.
//
// It may be of caches, which are behind, each by itself. What cannot be undone is therefore
// planned only where it is Confirmed; until then a [Plan] asks for that.
type Input struct {
	// Status says what is held, by the Parents or an older version of these: Changes, Total,
	// Requesters, Required, and the condition Current.
	Status *v1alpha1.PendingChangeStatus
	// Made is when the PendingChange was made.
	Made time.Time
	// Previous are the approvals that its status listed before.
	Previous []v1alpha1.PendingApproval
	// Approvals are all ChangeApprovals that name it.
	Approvals []v1alpha1.ChangeApproval
	// Parents are those that [ParentRefs] names, those that could be read. A write to one is
	// refused where it has changed since.
	Parents []Parent
	// Approved is what the root remembers.
	Approved []v1alpha1.ApprovedChange
	// Confirmed is true where Approved, and all ChangeApprovals that are not done or to which an
	// allowance of a parent belongs, were read from the API server after the Parents; and
	// so was Listed.
	Confirmed bool
	// Listed are the changes that the PendingChange lists there.
	Listed []v1alpha1.HeldChange
	// Seen are objects that a plan has asked for, as the API server has them.
	Seen map[v1alpha1.ObjectReference]Seen
	// MayDecide says whether somebody may decide about a change, and why not. An error means
	// that it is not known.
	MayDecide func(
		approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange,
	) (ok bool, reason string, err error)
	// Now is the time, of which no more than seconds count.
	Now time.Time
}

// Parent is an object that carries what approvals give, or is to.
type Parent struct {
	// Ref is what it is referred to by. Its UID counts.
	Ref v1alpha1.ObjectReference
	// Gone is true of one that is not there any more.
	Gone bool
	// Generation of it.
	Generation int64
	// Allowances are all that it carries.
	Allowances []v1alpha1.Allowance
	// Reports is true of an XR whose function reports how far the allowances are.
	Reports bool
	// List is what it has reported; nil where that is not known now.
	List *v1alpha1.State
}

// Seen is an object that was read from the API server: it is there, it is not, or that is not
// known.
type Seen struct {
	// Object that has the UID which was asked for; nil for none.
	Object *unstructured.Unstructured
	// Unknown is true where it could not be read now, and Hidden where it may not be.
	Unknown, Hidden bool
}

// ParentOf reads a parent. The error is about an annotation that does not parse.
func ParentOf(ref v1alpha1.ObjectReference, u *unstructured.Unstructured) (Parent, error) {
	list, err := allowance.Parse(u)
	if err != nil {
		return Parent{}, fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	out := Parent{Ref: ref, Generation: resource.Generation(u), Allowances: list}

	if _, said := resource.ConditionOf(u, v1alpha1.ConditionState); !said {
		return out, nil
	}

	if c, ok := resource.ConditionOf(u, v1alpha1.ConditionKausality); ok && c.Reason == v1alpha1.ReasonNotRun {
		return out, nil // What it has reported is of before.
	}

	out.Reports = true
	if list, known := resource.StateOf(u); known && !resource.Behind(u, list) {
		out.List = list
	}

	return out, nil
}

// ParentRefs are the parents that count, each once: those of what is held, those of what was
// approved, and the root.
func ParentRefs(root *v1alpha1.ObjectReference, in Input) []v1alpha1.ObjectReference {
	var out []v1alpha1.ObjectReference

	add := func(ref *v1alpha1.ObjectReference) {
		if ref != nil && ref.UID != "" && !slices.ContainsFunc(out, func(o v1alpha1.ObjectReference) bool { return o.UID == ref.UID }) {
			out = append(out, *ref)
		}
	}

	add(root)

	for i := range in.Status.Changes {
		add(in.Status.Changes[i].Parent)
	}

	for i := range in.Previous {
		add(in.Previous[i].Parent)
	}

	for i := range in.Approvals {
		for j := range in.Approvals[i].Status.Changes {
			add(in.Approvals[i].Status.Changes[j].Parent)
		}
	}

	return out
}
