// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// MayDelete reports whether a managed resource can be deleted without orphaning
// its external resource by accident: its gate is open for Delete, or its
// Composition asked to orphan.
func MayDelete(u *unstructured.Unstructured) bool {
	if slices.Contains(management.Normalize(resource.Strings(u.Object, "spec", "managementPolicies")), management.ActionDelete) {
		return true
	}

	return managed.Orphans(u)
}

// AwaitsDelete reports whether a managed resource's gate is going to open for
// Delete: that is allowed, and was not served.
func AwaitsDelete(u *unstructured.Unstructured) bool {
	rec, recordErr := managed.ParseRecord(u)
	list, listErr := allowance.Parse(u)
	desired, desiredErr := managed.Widest(u, rec, list)

	if recordErr != nil || listErr != nil || desiredErr != nil {
		return false
	}

	p := planning{m: managed.Resource{
		Object: u, Desired: desired, Current: managed.CurrentOf(u), Record: rec, Allowances: list,
		LooksForDrift: true,
	}, shared: &sharing{}}

	return slices.Contains(managed.ActionsOf(p.unserved()), management.ActionDelete)
}

// Pending reports whether a managed resource is on its way: its gate is open, an
// allowance that the gate can serve has not been used, or its provider has not
// caught up.
func Pending(u *unstructured.Unstructured) bool {
	rec, err := managed.ParseRecord(u)

	switch {
	case managed.Free(u) || management.Audited(u) && err == nil && rec != nil && rec.Audit:
		return unsynced(u)
	case err != nil || managed.GatedAgain(u, rec) == nil || rec.State == v1alpha1.GateOpen || management.Audited(u):
		return true
	case rec.State == v1alpha1.GateUngated:
		return unsynced(u)
	}

	list, err := allowance.Parse(u)
	if err != nil {
		return false
	}

	desired, err := managed.Widest(u, rec, list)

	// What waits for drift to be reverted or approved is on its way, too.
	p := planning{
		m:      managed.Resource{Object: u, Desired: desired, Current: managed.CurrentOf(u), Record: rec, Allowances: list},
		shared: &sharing{},
	}

	if err != nil || len(p.unserved()) > 0 {
		return true
	}

	return unsynced(u)
}

// unsynced reports whether a provider has not seen a resource's generation yet.
func unsynced(u *unstructured.Unstructured) bool {
	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && c.ObservedGeneration != 0 && c.ObservedGeneration < resource.Generation(u)
}
