// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An exemption is of changes that nobody has to ask for.
type exemption struct {
	// contract is which changes those are, in one sentence.
	contract string
	// exempts reports whether a change is one.
	exempts func(*input.Inputs, change.Change) bool
}

// exemptions are all of them.
func exemptions() [6]exemption {
	return [...]exemption{
		{
			"Metadata that no policy names; but for the controller reference, a label that would free the object from a policy or an " +
				"Enforcement, the release of a managed resource, and its external name behind a gate.",
			func(in *input.Inputs, c change.Change) bool {
				return c.Metadata() && !gatedMetadata(in.Objects, in.Writer, in.Authority.Policies, in.Enforced, in.External, in.Windows, c)
			},
		},
		{
			"The managementPolicies of a managed resource, which the API server guards.",
			func(in *input.Inputs, c change.Change) bool {
				return request.Under(c, "spec", "managementPolicies") && resource.IsManaged(cmp.Or(in.Objects.Old, in.Objects.New))
			},
		},
		{
			"What the API server allocates for a Service after the webhook was asked.",
			func(in *input.Inputs, c change.Change) bool {
				return in.Manner.Caller == request.Validate && allocated(in.Objects, c)
			},
		},
		{
			"References in which Crossplane records what belongs together, on Claims, XRs and managed resources.",
			func(in *input.Inputs, c change.Change) bool {
				return request.Bookkeeping(in.Objects, in.Writer, in.Manner) && machinery(c)
			},
		},
		{
			"The compositionUpdatePolicy that the API server fills in, unless a policy names it.",
			func(in *input.Inputs, c change.Change) bool {
				return filledIn(c) && !isNamed(in.Authority.Policies, in.Objects.GroupKind(), c)
			},
		},
		{
			"What a provider fills in of its managed resource, with LateInitialize.",
			func(in *input.Inputs, c change.Change) bool { return lateInitialization(in.Objects, in.Writer, c) },
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

// Exempt reports whether a change needs nobody's asking.
func Exempt(in *input.Inputs, c change.Change) bool {
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
func allocated(o request.Objects, c change.Change) bool {
	if !c.Addition() || len(c.Path) < 2 || o.GroupKind() != (schema.GroupKind{Kind: "Service"}) || c.Path[0].Field != "spec" {
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
func gatedMetadata(
	o request.Objects, by request.Writer, policies *policy.Set, enforced input.Enforced, outside request.External,
	windows input.Windows, c change.Change,
) bool {
	if len(c.Path) > 2 && c.Path[1].Field == "annotations" && strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix) {
		return c.Path[2].Field == v1alpha1.AnnotationRelease && input.MayRelease(o, by)
	}

	if externalName(c) && outside.Gated {
		return true // The gate would open for another external object.
	}

	if request.Under(c, "metadata", "ownerReferences") {
		return o.Old != nil && o.ControllerChanges()
	}

	if request.Under(c, "metadata", "finalizers") && by.IsCrossplane() {
		return false
	}

	return isNamed(policies, o.GroupKind(), c) || frees(o, by, policies, enforced, windows, c)
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
func lateInitialization(o request.Objects, by request.Writer, c change.Change) bool {
	if o.Operation != request.OperationUpdate || !c.Addition() || c.Joined || !resource.IsManaged(o.Old) || !by.IsProvider() {
		return false
	}

	if !request.Under(c, "spec", "forProvider") && !request.Under(c, "spec", "initProvider") {
		return false
	}

	if _, set := resource.Value(o.Old.Object, "spec", "managementPolicies"); !set {
		return true
	}

	return slices.ContainsFunc(resource.Strings(o.Old.Object, "spec", "managementPolicies"), func(p string) bool {
		return p == management.ActionAll || p == management.ActionLateInitialize
	})
}

// frees reports whether a change of what an Enforcement governs may free it from that,
// or bring it under a policy or a window that it was not under: in a write that has
// the first effect any change may, and a label that a selector reads always. Of
// windows only those for the user count: others may set it, to say what the window is
// about. Crossplane may change its own labels ([crossplaneLabels]).
func frees(
	o request.Objects, by request.Writer, policies *policy.Set, enforced input.Enforced, windows input.Windows, c change.Change,
) bool {
	if enforced.Freed && (!c.Metadata() || request.Under(c, "metadata", "labels") || request.Under(c, "metadata", "annotations")) {
		return true
	}

	if len(enforced.Governing) == 0 || !request.Under(c, "metadata", "labels") || len(c.Path) < 3 {
		return false
	}

	label := c.Path[2].Field
	if by.IsCrossplane() && strings.HasPrefix(label, crossplaneLabels) {
		return false // It is how Crossplane finds what belongs together.
	}

	return slices.ContainsFunc(policies.For(o.GroupKind()), func(p *policy.Policy) bool { return p.SelectsBy(label) }) ||
		slices.ContainsFunc(windows.All, func(u *allowance.Window) bool {
			return u.Object.Spec.ServiceAccount == by.User.Name && u.SelectsBy(label)
		})
}

// crossplaneLabels start the labels that Crossplane puts on its kinds and on
// what it composes.
const crossplaneLabels = "crossplane.io/"

// counts reports whether a change is of what a provider acts upon.
func counts(c change.Change) bool {
	return request.Under(c, "spec") && !request.Under(c, "spec", "managementPolicies") || externalName(c)
}

// externalName reports whether a change is of which external object is meant.
func externalName(c change.Change) bool {
	return request.Under(c, "metadata", "annotations", identity.AnnotationExternalName)
}
