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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// namespaceController carries out the deletion of namespaces.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// staysInNamespace says whether the object is not to go with its namespace
// though nothing else keeps it: something gated follows from it, and it would
// leave that behind. Who carries the deletion of the namespace out has asked for
// nothing.
func (d *decider) staysInNamespace() bool {
	return d.Operation == OperationDelete && d.withNamespace && exempt(d.User) && !resource.Deleting(d.Old) && ownsGated(d.Old)
}

// ownsGated says whether managed resources with a gate may follow from an
// object: it waits for us before it goes, or is a Claim of an XR that the
// composition function reports on.
func ownsGated(u *unstructured.Unstructured) bool {
	if resource.IsManaged(u) {
		return false
	}

	if slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) {
		return true
	}

	_, reported := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	return reported && resource.IsClaim(u)
}

// WithNamespace says whether a request carries out the deletion of the namespace
// that the object is in.
func WithNamespace(req *Request) bool {
	return req.Operation == OperationDelete && req.User.Name == namespaceController
}

// GoesUnrecorded says whether a deletion is not to be refused where it cannot be
// written down: a namespace. Without what it would give nothing below it goes that
// matters, and no cluster is to be locked up by us.
func GoesUnrecorded(req *Request) bool { return req.Operation == OperationDelete && isNamespace(req) }

// lackingInNamespace says what it takes for an object to go with its namespace,
// or without it.
func (d *decider) lackingInNamespace() string {
	object := fmt.Sprintf("%s %q", d.groupKind().Kind, resource.Name(d.Old))

	return fmt.Sprintf("Namespace %q is being deleted%s, but no grant to delete what %s stands for was recorded: "+
		"%s stays until somebody who may delete it does so; a namespace takes it along where an AllowancePolicy about Namespace "+
		"that names delete lets who deletes the namespace do so, and allows %s delete",
		resource.Name(d.Parent), d.deletedBy(), object, object, d.groupKind().Kind)
}

// deletedBy says who deleted the parent, as far as that is known.
func (d *decider) deletedBy() string {
	entries, _ := allowance.ParseTrace(d.Parent) // What does not parse names nobody.

	for _, e := range entries {
		if e.Field == v1alpha1.MutationDelete && e.Initiator != "" {
			return " by " + strings.TrimSpace(e.Initiator)
		}
	}

	return ""
}

// isNamespace says whether the object is a Namespace.
func isNamespace(req *Request) bool { return req.groupKind() == schema.GroupKind{Kind: "Namespace"} }

// noteNamespace has the decision's object say who deletes a namespace, though
// nothing is granted by that: what stays in it is not to be put down to the
// controller that does the work. False where it says so already.
func (d *decider) noteNamespace() bool {
	if _, denied := d.decision.Denied(); denied || !isNamespace(&d.Request) {
		return false
	}

	entry := v1alpha1.TraceEntry{
		Field: v1alpha1.MutationDelete, Generation: resource.Generation(d.Old), Initiator: d.User.Name,
		Trace: []v1alpha1.Hop{{
			Kind: d.Old.GetKind(), Name: resource.Name(d.Old), Generation: resource.Generation(d.Old), Field: v1alpha1.MutationDelete,
		}},
	}

	have, _ := allowance.ParseTrace(d.New) // What does not parse is reported when it is written.
	if slices.ContainsFunc(have, func(e v1alpha1.TraceEntry) bool { return e.Field == entry.Field && e.Initiator == entry.Initiator }) {
		return false
	}

	d.writeTrace([]v1alpha1.TraceEntry{entry})

	return true
}
