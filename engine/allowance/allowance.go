// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Covers reports whether an allowance of a parent is about a change of a child of
// the given kind. External allowances are about no child, and those of approvals about one
// change of one object, which their digest says.
func Covers(a v1alpha1.Allowance, kind schema.GroupKind, c change.Change) bool {
	if External(a) || OfApproval(a) || a.Kind != kind.Kind || (a.APIGroup != "" && a.APIGroup != kind.Group) {
		return false
	}

	return c.CoveredBy(a.Mutation)
}

// External reports whether an allowance is about the system behind a managed
// resource.
func External(a v1alpha1.Allowance) bool { return a.Relation == v1alpha1.RelationExternal }

// Merge adds allowances to those an object carries. One of the same relation,
// group, kind and mutation from a newer generation takes the place of the older
// ones, whoever gave them; so does one from a newer request within a generation.
// Of one request there is one for each policy, the first.
func Merge(have, add []v1alpha1.Allowance) []v1alpha1.Allowance {
	if len(add) == 0 {
		return have
	}

	out := append(make([]v1alpha1.Allowance, 0, len(have)+len(add)), have...)

	for _, a := range add {
		about := func(b v1alpha1.Allowance) bool { return sameTarget(a, b) }

		if i := slices.IndexFunc(out, func(b v1alpha1.Allowance) bool {
			age := CompareAge(b, a)

			return about(b) && (age > 0 || age == 0 && SameGiver(a, b))
		}); i >= 0 {
			if CompareAge(out[i], a) == 0 && out[i].ID == a.ID {
				out[i].Source.Also = also(out[i], PlacesOf(a))
			}

			continue
		}

		older := func(b v1alpha1.Allowance) bool { return about(b) && CompareAge(b, a) < 0 }
		if i := slices.IndexFunc(out, older); i >= 0 {
			out[i] = a
			out = append(out[:i+1], slices.DeleteFunc(out[i+1:], older)...)
		} else {
			out = append(out, a)
		}
	}

	return out
}

// also are the other fields that gave an allowance, with more of the same change. A creation is of all of them.
func also(a v1alpha1.Allowance, more []string) []string {
	if Field(a) == v1alpha1.MutationCreate {
		return nil
	}

	out := slices.Clone(a.Source.Also)

	for _, place := range more {
		if place != "" && place != PlaceOf(a) && len(out) < v1alpha1.MaxAlso && !slices.Contains(out, place) {
			out = append(out, place)
		}
	}

	return out
}

// sameTarget reports whether two allowances are about the same. External actions
// hang on the source that gives them, for they ride along with its
// mutations. What a deletion gave outlasts every generation, and stands by itself.
func sameTarget(a, b v1alpha1.Allowance) bool {
	if a.Digest != b.Digest || a.Approval != b.Approval {
		return false // An approval is of one change, and stands by itself.
	}

	if ByDeletion(a) != ByDeletion(b) {
		return false
	}

	if External(a) || External(b) {
		return a.Relation == b.Relation && SameGiver(a, b) && slices.Equal(a.Mutations, b.Mutations)
	}

	return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Mutation == b.Mutation
}

// SameGiver reports whether the same policy or window gave two allowances, or approvals both.
func SameGiver(a, b v1alpha1.Allowance) bool {
	return a.Source.Type == b.Source.Type && (a.Source.Name == b.Source.Name || a.Source.Type == v1alpha1.SourceApproval)
}

// SameGrant reports whether two allowances are about the same, and were given by
// the same source for the same field to the same initiator, be it at another
// generation.
func SameGrant(a, b v1alpha1.Allowance) bool {
	return sameTarget(a, b) && SameGiver(a, b) && a.Initiator == b.Initiator && Field(a) == Field(b)
}

// Unserved returns the allowances of an object that have not served yet, in
// order; of others the actions of other systems, which last.
func Unserved(u *unstructured.Unstructured, list []v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range list {
		if !Served(u, a) {
			out = append(out, a)
		} else if rest, ok := lasting(a); ok {
			out = append(out, rest)
		}
	}

	return out
}

// CheckSize refuses an annotation value that is larger than one object may
// carry.
func CheckSize(value string) error {
	if len(value) > v1alpha1.MaxAllowancesBytes {
		return fmt.Errorf("cannot store annotation %q: %d bytes are more than the limit of %d: "+
			"wait until earlier changes are applied, or let fewer policies match one change",
			v1alpha1.AnnotationAllowances, len(value), v1alpha1.MaxAllowancesBytes)
	}

	return nil
}
