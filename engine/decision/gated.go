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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// exempt reports whether a change needs nobody's asking.
func (x *exemptions) exempt(c change.Change) bool {
	switch {
	case c.Metadata():
		return !x.gatedMetadata(c)
	case under(c, "spec", "managementPolicies") && resource.IsManaged(cmp.Or(x.Old, x.New)):
		return true // The gate's field; the API server guards it.
	case x.stored && x.allocated(c):
		return true
	case x.bookkeeping() && machinery(c), filledIn(c) && !x.named(c):
		return true
	default:
		return x.lateInitialization(c)
	}
}

// allocated reports whether the API server may have filled in a field of a Service
// after the mutating webhook was asked.
//
// Source: k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go.
func (f *facts) allocated(c change.Change) bool {
	if !c.Addition() || len(c.Path) < 2 || f.groupKind() != (schema.GroupKind{Kind: "Service"}) || c.Path[0].Field != "spec" {
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
func (x *exemptions) gatedMetadata(c change.Change) bool {
	if len(c.Path) > 2 && c.Path[1].Field == "annotations" && strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix) {
		return c.Path[2].Field == v1alpha1.AnnotationRelease && x.mayRelease()
	}

	if externalName(c) && x.gated {
		return true // The gate would open for another external object.
	}

	if under(c, "metadata", "ownerReferences") {
		return x.Old != nil && x.controllerChanges()
	}

	if under(c, "metadata", "finalizers") && x.byCrossplane() {
		return false
	}

	return x.named(c) || x.frees(c)
}

// controllerChanges reports whether the object would get another controller
// reference than the one it has.
func (l *lineage) controllerChanges() bool {
	was, had := resource.ParentOf(l.Old)
	is, has := resource.ParentOf(l.New)

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
func (f *facts) lateInitialization(c change.Change) bool {
	if f.Operation != OperationUpdate || !c.Addition() || c.Joined || !resource.IsManaged(f.Old) || !f.provider() {
		return false
	}

	if !under(c, "spec", "forProvider") && !under(c, "spec", "initProvider") {
		return false
	}

	if _, set := resource.Value(f.Old.Object, "spec", "managementPolicies"); !set {
		return true
	}

	return slices.ContainsFunc(resource.Strings(f.Old.Object, "spec", "managementPolicies"), func(p string) bool {
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
