// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Field is the field of the object whose change gave an allowance, create or delete; empty where nothing of it was
// changed.
func Field(a v1alpha1.Allowance) string {
	if ByDeletion(a) {
		return v1alpha1.MutationDelete
	}

	return a.Source.Field
}

// PlaceOf is the field whose change gave an allowance, where it is whatever moves beside it: see [v1alpha1.AllowanceSource.Place].
func PlaceOf(a v1alpha1.Allowance) string { return cmp.Or(a.Source.Place, Field(a)) }

// PlacesOf are all fields whose change gave an allowance, see [PlaceOf].
func PlacesOf(a v1alpha1.Allowance) []string {
	return append([]string{PlaceOf(a)}, a.Source.Also...)
}

// ByDeletion reports whether the deletion of the object that carries it gave an allowance. It serves while the object is
// being deleted, and not before: what was asked for may have been refused since.
func ByDeletion(a v1alpha1.Allowance) bool { return a.Source.Type == v1alpha1.SourceDeletion }

// OfDeletion reports whether a managed resource carries an allowance because it is to be deleted.
func OfDeletion(a v1alpha1.Allowance) bool { return External(a) && ByDeletion(a) }

// GrantsDeletion reports whether any of a list is for the deletion of the managed resource that carries it.
func GrantsDeletion(list []v1alpha1.Allowance) bool { return slices.ContainsFunc(list, OfDeletion) }

// OfWindowAlone reports whether a window gave a managed resource an allowance by itself, and not with a change of it.
func OfWindowAlone(a v1alpha1.Allowance) bool {
	return a.Source.Type == v1alpha1.SourceWindow && a.Source.Field == ""
}

// OfApproval reports whether a ChangeApproval gave an allowance for one change of one object to one value.
func OfApproval(a v1alpha1.Allowance) bool { return a.Digest != "" }

// Served reports whether an allowance of an object has served, by its source.
//
//   - External, of a managed resource: its gate has closed behind it.
//   - Deletion: never. It ends with the object, or is withdrawn.
//   - Approval: not by what its object shows, see [Used]. The manager takes it away.
//   - Others: the object's controller, or of an XR its composition function, is done with the change that gave it.
func Served(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	switch {
	case External(a) && resource.IsManaged(u):
		rec, err := ParseGate(u)

		return err == nil && rec != nil && a.Generation <= rec.Consumed
	case ByDeletion(a), OfApproval(a):
		return false
	}

	if p, ok := resource.ProgressOf(u); ok {
		return passed(p.Settled, a)
	}

	return passed(v1alpha1.Settled{Generation: resource.ObservedGeneration(u)}, a) && resource.Converged(u)
}

// Settled reports whether the composition function that reports on an object says
// that it is done with an allowance of it.
func Settled(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if ByDeletion(a) || OfApproval(a) {
		return false
	}

	p, _ := resource.ProgressOf(u)

	return passed(p.Settled, a)
}

// passed reports whether what has settled of an object includes the change that gave an allowance of it.
func passed(settled v1alpha1.Settled, a v1alpha1.Allowance) bool {
	return settled.Generation > a.Generation || settled.Generation == a.Generation && settled.Request >= RequestOf(a)
}

// ByUse reports whether nothing but its use shows that an allowance of an object has served: it is of an approval, of a
// kind that reports no observed generation, or was given within a generation.
func ByUse(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if OfApproval(a) {
		return true
	}

	if _, settles := resource.ProgressOf(u); settles || ByDeletion(a) {
		return false
	}

	return RequestOf(a) > 0 || resource.ObservedGeneration(u) == 0
}

// Related reports whether one of two fields is the other, or within it.
func Related(a, b string) bool {
	return Within(a, b) || Within(b, a)
}

// Within reports whether a field is another one, or within it.
func Within(field, other string) bool {
	rest, ok := strings.CutPrefix(field, other)

	return ok && other != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
