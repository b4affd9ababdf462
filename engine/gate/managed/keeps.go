// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// An allowed deletion of a managed resource deletes its external object where that was made, or changed, by it; and where all that
// says what becomes of the external object agrees. Otherwise the external object stays.

// Kept says why the external object of a managed resource stays when that is deleted, though its Composition asks for
// Delete: the external object was there before, and nothing that was allowed has changed it; or another deletion policy is
// asked for than is stored, or one is held. Empty where it does not.
func Kept(u *unstructured.Unstructured) string {
	rec, err := ParseRecord(u)
	if err != nil {
		return ""
	}

	return kept(u, rec)
}

func kept(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) string {
	if rec == nil || rec.State == v1alpha1.GateUngated {
		return ""
	}

	asked, err := management.Desired(u)
	released := resource.Annotation(u, v1alpha1.AnnotationRelease) == v1alpha1.ReleaseOrphan && !rec.Keeps

	switch {
	case err != nil || !slices.Contains(asked, management.ActionDelete) || released || deletionPolicyOf(u) == deletionPolicyOrphan:
		return ""
	case rec.Existed:
		return "it existed before, and no allowed change was applied to it"
	case untouched(u, rec):
		return "its provider has not looked at it"
	case another(u, rec):
		return "its provider shows another object than the one that was there when its gate closed"
	case wish.Disputed(u, deletionPolicyDelete, "spec", "deletionPolicy"):
		return "a change of spec.deletionPolicy is held, or not applied"
	case wish.Disputed(u, nil, "spec", "managementPolicies"):
		return "a change of spec.managementPolicies is held"
	default:
		return ""
	}
}

// Untouched reports whether the provider of a managed resource that is to be made has not come to that: it blocks the deletion of
// what it has looked at.
func Untouched(u *unstructured.Unstructured) bool {
	rec, err := ParseRecord(u)

	return err == nil && rec != nil && untouched(u, rec)
}

func untouched(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	return rec.Creating && !tried(u) && !slices.Contains(u.GetFinalizers(), ProviderFinalizer)
}

// ProviderFinalizer is what a provider blocks the deletion of a managed resource with until it
// is done with the external object.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/reconciler/managed, FinalizerName.
const ProviderFinalizer = "finalizer.managedresource.crossplane.io"

// NeedsProvider reports whether a provider is not done yet with a managed resource that has a gate. It waits itself until nobody else
// blocks the deletion but the manager: a deletion in the foreground goes on without what the provider needs, unless the manager takes
// it over.
func NeedsProvider(u *unstructured.Unstructured) bool {
	list := u.GetFinalizers()

	return management.Governed(u) && slices.Contains(list, ProviderFinalizer) &&
		(slices.Contains(list, v1alpha1.Finalizer) || !slices.Contains(list, metav1.FinalizerDeleteDependents))
}

// AwaitsCreation reports whether a provider has looked at a managed resource that is to be made, and has neither begun to make its
// external object nor said that this was there before: until then nobody knows whose a deletion would delete.
func (m Resource) AwaitsCreation() bool { return m.Creating() && !tried(m.Object) }

// Deletion policies; Delete is that of a managed resource that has none.
const (
	deletionPolicyDelete = "Delete"
	deletionPolicyOrphan = "Orphan"
)

func deletionPolicyOf(u *unstructured.Unstructured) string {
	return resource.String(u.Object, "spec", "deletionPolicy")
}

// Spares reports whether a record says that the external object stays though a deletion is allowed. The managed resource is
// released then: the API server lets it go without its gate being open for Delete.
func (m Resource) Spares(rec *v1alpha1.GateRecord) bool {
	return m.AsksToDelete() && kept(m.Object, rec) != ""
}
