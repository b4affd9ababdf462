// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An exemption is of changes that nobody has to ask for.
type exemption struct {
	// contract is which changes those are, in one sentence.
	contract string
	// exempts reports whether a change is one.
	exempts func(*inputs, change.Change) bool
}

// exemptions are all of them.
func exemptions() [6]exemption {
	return [...]exemption{
		{
			"Metadata that no policy names; but for the controller reference, a label that would free the object from a policy or an " +
				"Enforcement, the release of a managed resource, and its external name behind a gate.",
			func(in *inputs, c change.Change) bool {
				return c.Metadata() && !gatedMetadata(in.o, in.by, in.auth.Policies, in.enforced, in.outside, in.windows, c)
			},
		},
		{
			"The managementPolicies of a managed resource, which the API server guards.",
			func(in *inputs, c change.Change) bool {
				return under(c, "spec", "managementPolicies") && resource.IsManaged(cmp.Or(in.o.Old, in.o.New))
			},
		},
		{
			"What the API server allocates for a Service after the webhook was asked.",
			func(in *inputs, c change.Change) bool { return in.how.stored && allocated(in.o, c) },
		},
		{
			"References in which Crossplane records what belongs together, on Claims, XRs and managed resources.",
			func(in *inputs, c change.Change) bool { return bookkeeping(in.o, in.by, in.how) && machinery(c) },
		},
		{
			"The compositionUpdatePolicy that the API server fills in, unless a policy names it.",
			func(in *inputs, c change.Change) bool {
				return filledIn(c) && !isNamed(in.auth.Policies, in.o.groupKind(), c)
			},
		},
		{
			"What a provider fills in of its managed resource, with LateInitialize.",
			func(in *inputs, c change.Change) bool { return lateInitialization(in.o, in.by, c) },
		},
	}
}

// Exemptions calls a function with the contract of each exemption.
func Exemptions(yield func(contract string) bool) {
	for _, e := range exemptions() {
		if !yield(e.contract) {
			return
		}
	}
}

// exempt reports whether a change needs nobody's asking.
func exempt(in *inputs, c change.Change) bool {
	for _, e := range exemptions() {
		if e.exempts(in, c) {
			return true
		}
	}

	return false
}

// allocated reports whether the API server may have filled in a field of a Service
// after the mutating webhook was asked.
//
// Source: k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go.
func allocated(o objects, c change.Change) bool {
	if !c.Addition() || len(c.Path) < 2 || o.groupKind() != (schema.GroupKind{Kind: "Service"}) || c.Path[0].Field != "spec" {
		return false
	}

	switch c.Path[1].Field {
	case "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort":
		return true
	default:
		return c.Path[1].Field == "ports" && c.Path[len(c.Path)-1].Field == "nodePort"
	}
}

// gatedMetadata reports whether a change of metadata counts: where a policy names
// it, and where an object would free itself from its controller.
func gatedMetadata(o objects, by writer, policies *policy.Set, enforced enforced, outside outside, windows windows, c change.Change) bool {
	if len(c.Path) > 2 && c.Path[1].Field == "annotations" && strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix) {
		return c.Path[2].Field == v1alpha1.AnnotationRelease && mayRelease(o, by)
	}

	if externalName(c) && outside.gated {
		return true // The gate would open for another external object.
	}

	if under(c, "metadata", "ownerReferences") {
		return o.Old != nil && o.controllerChanges()
	}

	if under(c, "metadata", "finalizers") && by.isCrossplane() {
		return false
	}

	return isNamed(policies, o.groupKind(), c) || frees(o, by, policies, enforced, windows, c)
}

// controllerChanges reports whether the object would get another controller
// reference than the one it has.
func (o objects) controllerChanges() bool {
	was, had := resource.ParentOf(o.Old)
	is, has := resource.ParentOf(o.New)

	return had && (!has || !sameParent(was, is))
}

// sameParent compares references by UID where both have one: an owner that
// moves to another version of its API is the same owner.
func sameParent(a, b resource.Reference) bool {
	if a.UID != "" && b.UID != "" {
		return a.UID == b.UID
	}

	return a == b
}

// machinery reports whether a change is of a field in the spec of Crossplane's kinds
// in which Crossplane records what belongs together.
func machinery(c change.Change) bool {
	if len(c.Path) < 2 || c.Path[0].Field != "spec" {
		return false
	}

	switch c.Path[1].Field {
	case "crossplane", "resourceRef", "resourceRefs", "claimRef", "compositionRef", "compositionRevisionRef", "writeConnectionSecretToRef":
		return true
	default:
		return false
	}
}

// filledIn reports whether a change is of what the API server fills in as soon as an XR
// has anything to do with Crossplane. What a new revision then asks for is held.
func filledIn(c change.Change) bool {
	const field = "compositionUpdatePolicy"

	return c.Addition() && (c.Field == "spec.crossplane."+field || c.Field == "spec."+field)
}

// lateInitialization reports whether a provider fills in an unset field of its
// managed resource, where LateInitialize is in force. One more element of a
// list that is set is no unset field.
func lateInitialization(o objects, by writer, c change.Change) bool {
	if o.Operation != OperationUpdate || !c.Addition() || c.Joined || !resource.IsManaged(o.Old) || !by.isProvider() {
		return false
	}

	if !under(c, "spec", "forProvider") && !under(c, "spec", "initProvider") {
		return false
	}

	if _, set := resource.Value(o.Old.Object, "spec", "managementPolicies"); !set {
		return true
	}

	return slices.ContainsFunc(resource.Strings(o.Old.Object, "spec", "managementPolicies"), func(p string) bool {
		return p == gate.ActionAll || p == gate.ActionLateInitialize
	})
}

// under reports whether a change is at or below a path of map keys.
func under(c change.Change, keys ...string) bool {
	if len(c.Path) < len(keys) {
		return false
	}

	for i, k := range keys {
		if c.Path[i].Type != fieldpath.SegmentField || c.Path[i].Field != k {
			return false
		}
	}

	return true
}
