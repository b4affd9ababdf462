// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// restoreGate leaves the gate as it is where Crossplane applies what a composition
// function stamped before the gate was moved. That happens at nearly every allowed
// change, and a refusal would have Crossplane warn of it. Anybody else's write, and
// what a pipeline without the function asks for, the API server refuses.
func restoreGate(o request.Objects, by request.Writer, out *proposal) {
	if o.Operation != request.OperationUpdate || !Movable(o, by) {
		return
	}

	was, is := SetOf(o.Old), SetOf(out.object)
	if !management.Same(was, is) && management.Moved(was) && management.Moved(is) {
		SetPolicies(out.object, was)
		out.Overruled = append(out.Overruled, FieldPolicies)

		if fields := gate.StayOwned(o.Old, out.object); fields != nil {
			meta := maps.Clone(resource.Map(out.object.Object, "metadata"))
			meta["managedFields"] = fields
			out.object.Object["metadata"] = meta
		}
	}
}

// FieldPolicies is the field that is a managed resource's gate.
const FieldPolicies = "spec.managementPolicies"

// SetOf is the set of actions in an object's managementPolicies.
func SetOf(u *unstructured.Unstructured) []string {
	return resource.Strings(u.Object, "spec", "managementPolicies")
}

// Movable reports whether Crossplane applies a managed resource whose gate may be another one when that is stored.
func Movable(o request.Objects, by request.Writer) bool {
	return by.Applies() && management.Governed(o.Old) && resource.Annotation(o.New, v1alpha1.AnnotationWish) != ""
}

// SetPolicies sets the management policies of an object, and leaves what its spec
// shares with others as it is.
func SetPolicies(u *unstructured.Unstructured, set []string) {
	spec := maps.Clone(resource.Map(u.Object, "spec"))
	spec["managementPolicies"] = resource.Values(set)
	u.Object["spec"] = spec
}

// MovesGate reports whether a gate may be moved, or a deletion be blocked, with a request.
func MovesGate(req *request.Request) bool {
	return req.Basis.Settings.Gates && req.New != nil && (resource.IsManaged(req.New) || resource.Composing(req.New))
}

// ReadGated reads whether the request is an update of a managed resource with a gate, by anybody but its provider and our manager.
func ReadGated(o request.Objects, by request.Writer) bool {
	return o.Operation == request.OperationUpdate && management.Governed(o.Old) && !managed.Ungated(o.Old) && !by.IsProvider() &&
		!by.IsManager()
}
