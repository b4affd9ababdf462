// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// staysInNamespace reports whether the object is not to go with its namespace
// though nothing else prevents that: something gated follows from it, and would be
// orphaned. Who carries the deletion of the namespace out has asked for
// nothing, and takes what is composed before its parent has given what its own deletion gives.
func (l *lineage) staysInNamespace() bool {
	return l.Operation == OperationDelete && (l.withNamespace && deletesForOthers(l.User) || l.beforeItsParent()) &&
		!resource.Deleting(l.Old) && hasGatedBelow(l.Old)
}

// beforeItsParent reports whether the namespace takes an object whose parent is there.
func (l *lineage) beforeItsParent() bool {
	return WithNamespace(&l.Request) && l.Parent != nil && !l.withNamespace
}

// staysWithClaim reports whether the object is an XR that is not to be deleted while its Claim is there: that would have another one
// made, and what is gated below this one would stay and stand for the same external objects as what that composes.
func (l *lineage) staysWithClaim() bool {
	return l.Operation == OperationDelete && !deletesForOthers(l.User) && l.Parent != nil && resource.BoundToClaim(l.Old) &&
		resource.IsClaim(l.Parent) && !resource.Deleting(l.Parent) && !resource.Deleting(l.Old) && hasGatedBelow(l.Old)
}

// hasGatedBelow reports whether managed resources with a gate may follow from an
// object: it waits for us before it is deleted, or is a Claim of an XR that the
// composition function reports on.
func hasGatedBelow(u *unstructured.Unstructured) bool {
	if resource.IsManaged(u) {
		return false
	}

	if slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) {
		return true
	}

	_, reported := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	return reported && resource.IsClaim(u)
}

// WithNamespace reports whether a request carries out the deletion of the namespace
// that the object is in.
func WithNamespace(req *Request) bool {
	return req.Operation == OperationDelete && req.User.Name == policy.NamespaceController
}

// PassesUnrecorded reports whether a deletion is not to be refused where it cannot be
// written down: a namespace. Without what it would give nothing below it is deleted
// that matters, and no cluster is to be locked up by us.
func PassesUnrecorded(req *Request) bool { return req.Operation == OperationDelete && isNamespace(req) }

// lackingInNamespace says what it takes for an object to go with its namespace,
// or without it.
func (x explainer) lackingInNamespace() Lack {
	object := fmt.Sprintf("%s %q", x.groupKind().Kind, resource.Name(x.Old))

	return Lack{
		What: policy.LackParent,
		Text: fmt.Sprintf("Namespace %q is being deleted%s, without permission to delete %s",
			resource.Name(x.Parent), x.deletedBy(), object),
		Fix: fmt.Sprintf("ask someone with permission to delete %s, or add an AllowancePolicy about the deletion of a Namespace "+
			"that allows %s delete", object, x.groupKind().Kind),
	}
}

// deletedBy says who deleted the parent, as far as that is known.
func (x explainer) deletedBy() string {
	entries, _ := allowance.ParseTrace(x.Parent) // What does not parse names nobody.

	for _, e := range entries {
		if e.Field == v1alpha1.MutationDelete && e.Initiator != "" {
			return " by " + strings.TrimSpace(e.Initiator)
		}
	}

	return ""
}

// isNamespace reports whether the object is a Namespace.
func isNamespace(req *Request) bool { return req.groupKind() == schema.GroupKind{Kind: "Namespace"} }

// noteNamespace has the decision's object say who deletes a namespace, though
// nothing is granted by that: what stays in it is not to be put down to the
// controller that does the work. False where it says so already.
func (s *stamper) noteNamespace() bool {
	if s.refuses() || !isNamespace(&s.Request) {
		return false
	}

	entry := v1alpha1.TraceEntry{
		Field: v1alpha1.MutationDelete, Generation: resource.Generation(s.Old), Initiator: s.User.Name,
		Trace: []v1alpha1.Hop{{
			Kind: s.Old.GetKind(), Name: resource.Name(s.Old), Generation: resource.Generation(s.Old), Field: v1alpha1.MutationDelete,
		}},
	}

	have, _ := allowance.ParseTrace(s.object) // What does not parse is reported when it is written.
	if slices.ContainsFunc(have, func(e v1alpha1.TraceEntry) bool { return e.Field == entry.Field && e.Initiator == entry.Initiator }) {
		return false
	}

	s.writeTrace([]v1alpha1.TraceEntry{entry})

	return true
}
