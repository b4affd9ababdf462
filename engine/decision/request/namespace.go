// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// StaysInNamespace reports whether the object is not to go with its namespace
// though nothing else prevents that: something gated follows from it, and would be
// orphaned. Who carries the deletion of the namespace out has asked for
// nothing, and takes what is composed before its parent has given what its own deletion gives.
func StaysInNamespace(o Objects, by Writer) bool {
	return o.Operation == OperationDelete && (o.WithNamespace && DeletesForOthers(by.User) || beforeItsParent(o, by)) &&
		!resource.Deleting(o.Old) && hasGatedBelow(o.Old)
}

// beforeItsParent reports whether the namespace takes an object whose parent is there.
func beforeItsParent(o Objects, by Writer) bool {
	return o.Operation == OperationDelete && by.User.Name == policy.NamespaceController && o.Parent != nil && !o.WithNamespace
}

// StaysWithClaim reports whether the object is an XR that is not to be deleted while its Claim is there: that would have another one
// made, and what is gated below this one would stay and stand for the same external objects as what that composes.
func StaysWithClaim(o Objects, by Writer) bool {
	return o.Operation == OperationDelete && !DeletesForOthers(by.User) && o.Parent != nil && resource.BoundToClaim(o.Old) &&
		resource.IsClaim(o.Parent) && !resource.Deleting(o.Parent) && !resource.Deleting(o.Old) && hasGatedBelow(o.Old)
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

// DeletedBy says who deleted the parent, as far as that is known.
func DeletedBy(o Objects) string {
	entries, _ := allowance.ParseTrace(o.Parent) // What does not parse names nobody.

	for _, e := range entries {
		if e.Field == v1alpha1.MutationDelete && e.Initiator != "" {
			return " by " + strings.TrimSpace(e.Initiator)
		}
	}

	return ""
}

// isNamespace reports whether the object is a Namespace.
func isNamespace(req *Request) bool { return req.groupKind() == schema.GroupKind{Kind: "Namespace"} }

// OpenForAnother reports whether a person deletes a managed resource whose gate is
// open because somebody else asked to delete it.
func OpenForAnother(o Objects, by Writer) bool {
	if o.Operation != OperationDelete || by.User.Machine() || !resource.IsManaged(o.Old) || resource.Deleting(o.Old) {
		return false
	}

	rec, err := allowance.ParseGate(o.Old)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen && slices.Contains(rec.Actions, management.ActionDelete) &&
		slices.ContainsFunc(rec.Allowances, allowance.OfDeletion)
}
