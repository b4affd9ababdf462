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
func staysInNamespace(o objects, by writer) bool {
	return o.Operation == OperationDelete && (o.WithNamespace && deletesForOthers(by.User) || beforeItsParent(o, by)) &&
		!resource.Deleting(o.Old) && hasGatedBelow(o.Old)
}

// beforeItsParent reports whether the namespace takes an object whose parent is there.
func beforeItsParent(o objects, by writer) bool {
	return o.Operation == OperationDelete && by.User.Name == policy.NamespaceController && o.Parent != nil && !o.WithNamespace
}

// staysWithClaim reports whether the object is an XR that is not to be deleted while its Claim is there: that would have another one
// made, and what is gated below this one would stay and stand for the same external objects as what that composes.
func staysWithClaim(o objects, by writer) bool {
	return o.Operation == OperationDelete && !deletesForOthers(by.User) && o.Parent != nil && resource.BoundToClaim(o.Old) &&
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

// lackingInNamespace says what it takes for an object to go with its namespace,
// or without it.
func lackingInNamespace(o objects) Lack {
	object := fmt.Sprintf("%s %q", o.groupKind().Kind, resource.Name(o.Old))

	return Lack{
		What: policy.LackParent,
		Text: fmt.Sprintf("Namespace %q is being deleted%s, without permission to delete %s",
			resource.Name(o.Parent), deletedBy(o), object),
		Fix: fmt.Sprintf("ask someone with permission to delete %s, or add an AllowancePolicy about the deletion of a Namespace "+
			"that allows %s delete", object, o.groupKind().Kind),
	}
}

// deletedBy says who deleted the parent, as far as that is known.
func deletedBy(o objects) string {
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

// noteNamespace has the decision's object say who deletes a namespace, though
// nothing is granted by that: what stays in it is not to be put down to the
// controller that does the work. False where it says so already, and of anything else.
func noteNamespace(o objects, by writer, problems *problems, object *unstructured.Unstructured) bool {
	if o.groupKind() != (schema.GroupKind{Kind: "Namespace"}) {
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
