// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// gatedChanges are the request's changes that need to be asked for.
func (d *decider) gatedChanges() []change.Change {
	switch d.Operation {
	case OperationDelete:
		return []change.Change{change.Delete()}
	case OperationCreate:
		return append([]change.Change{change.Create()}, d.filter(change.Between(nil, d.New.Object))...)
	default:
		return d.filter(change.Between(d.Old.Object, d.New.Object))
	}
}

func (d *decider) filter(all []change.Change) []change.Change {
	var out []change.Change

	for _, c := range all {
		if !d.exempt(c) {
			out = append(out, c)
		}
	}

	return out
}

// exempt says whether a change needs nobody's asking.
func (d *decider) exempt(c change.Change) bool {
	switch {
	case c.Metadata():
		return !d.gatedMetadata(c)
	case under(c, "spec", "managementPolicies") && resource.IsManaged(d.New):
		return true // The gate's own field; the API server guards it.
	case d.User.Name == d.Settings.Crossplane && machinery(c):
		return true
	default:
		return d.lateInitialization(c)
	}
}

// gatedMetadata says whether a change of metadata counts: where a policy names
// it, and where an object would free itself from its controller.
func (d *decider) gatedMetadata(c change.Change) bool {
	if len(c.Path) > 2 && c.Path[1].Field == "annotations" && strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix) {
		return false
	}

	if under(c, "metadata", "ownerReferences") {
		return d.Old != nil && d.controllerChanges()
	}

	if under(c, "metadata", "finalizers") && d.User.Name == d.Settings.Crossplane {
		return false
	}

	for _, p := range d.Policies.For(d.groupKind()) {
		if p.Names(c) {
			return true
		}
	}

	return false
}

// controllerChanges says whether the object would get another controller
// reference than the one it has.
func (d *decider) controllerChanges() bool {
	was, had := resource.ParentOf(d.Old)
	is, has := resource.ParentOf(d.New)

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

// machinery says whether a change is Crossplane's bookkeeping in the spec of a
// Claim or XR.
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

// lateInitialization says whether a provider fills in an unset field of its
// own managed resource, where LateInitialize is in force.
func (d *decider) lateInitialization(c change.Change) bool {
	if d.Operation != OperationUpdate || !c.Addition() || !resource.IsManaged(d.Old) ||
		!d.User.ServiceAccount() || d.User.Name == d.Settings.Crossplane {
		return false
	}

	if !under(c, "spec", "forProvider") && !under(c, "spec", "initProvider") {
		return false
	}

	policies := resource.Strings(d.Old.Object, "spec", "managementPolicies")
	if len(policies) == 0 {
		return true
	}

	for _, p := range policies {
		if p == "*" || p == "LateInitialize" {
			return true
		}
	}

	return false
}

// under says whether a change is at or below a path of map keys.
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
