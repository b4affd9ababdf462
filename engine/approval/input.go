// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Input is the basis of a [Plan] for the ChangeApprovals of one PendingChange.
//
// It may come from caches, each behind by itself. A write to a parent that has changed since is refused; what else cannot be
// undone is planned only by an input that is Confirmed. What is to be taken away waits for nothing that may fail.
type Input struct {
	// Status says what is held, by the Parents or an older version of these: Changes, Total,
	// Requesters, Required, and the condition Current.
	Status *v1alpha1.PendingChangeStatus
	// Made is the creation time of the PendingChange.
	Made time.Time
	// Previous are the approvals that its status listed before.
	Previous []v1alpha1.PendingApproval
	// Approvals are all ChangeApprovals that name it, and those of the allowances of Parents.
	Approvals []v1alpha1.ChangeApproval
	// Parents are the readable ones of [ParentRefs].
	Parents []Parent
	// Approved is the memory of the root: changes that were applied because of approvals.
	Approved []v1alpha1.ApprovedChange
	// Listed are the changes in the status of the PendingChange.
	Listed []v1alpha1.HeldChange
	// Confirmed is true where Approved, Listed, and all Approvals that are not [Final] or to which an allowance of a parent
	// belongs were read from the API server after the Parents.
	Confirmed bool
	// Cluster answers what else a decision depends on.
	Cluster Cluster
	// Now is the time, to the second.
	Now time.Time
}

// Cluster answers questions about users and objects.
type Cluster interface {
	// MayDecide reports whether an approver may decide about a change, and why not. An error means
	// that it is not known.
	MayDecide(ctx context.Context, approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange) (
		ok bool, reason string, err error)
	// Object reads an object from the API server. A plan asks once for each. An error ends the attempt.
	Object(ctx context.Context, ref v1alpha1.ObjectReference) (Seen, error)
}

// Seen is an answer of the API server about an object: it exists, it does not, or that is not known.
type Seen struct {
	// Object with the UID of the reference; nil for none.
	Object *unstructured.Unstructured
	// Unknown is true after a failure to read it, and Hidden without the right to read it.
	Unknown, Hidden bool
}

// Parent is an object that carries allowances of approvals, or is to.
type Parent struct {
	// Ref is the reference to it, with its UID.
	Ref v1alpha1.ObjectReference
	// Gone is true of one that does not exist any more.
	Gone bool
	// Generation of it.
	Generation int64
	// Allowances are all that it carries.
	Allowances []v1alpha1.Allowance
	// Reports is true of an XR whose function reports the progress of allowances.
	Reports bool
	// List is its last report; nil where that is not known now.
	List *v1alpha1.State
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

// ParentRefs are the parents that count, each once: the root, those of held changes, and those of
// changes that were decided about.
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

// Final reports whether a final state of each change of a ChangeApproval is recorded.
func Final(cha *v1alpha1.ChangeApproval) bool {
	return !slices.ContainsFunc(cha.Spec.Changes, func(digest string) bool {
		return !slices.ContainsFunc(cha.Status.Changes, func(d v1alpha1.ChangeDecision) bool { return d.Digest == digest && d.State.Final() })
	})
}

// given reports whether a ChangeApproval gave an allowance.
func given(a v1alpha1.Allowance) bool { return a.Digest != "" || a.Approval != "" }
