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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
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

// GrantingField is the field of the object whose change gave an allowance; empty
// where it does not say.
func GrantingField(a v1alpha1.Allowance) string { return grantingField(a) }

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

		if slices.ContainsFunc(out, func(b v1alpha1.Allowance) bool {
			age := CompareAge(b, a)

			return about(b) && (age > 0 || age == 0 && b.Policy == a.Policy)
		}) {
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

// sameTarget reports whether two allowances are about the same. External actions
// hang on the policy that grants them, for they ride along with that policy's
// mutations. What a deletion gave outlasts every generation, and stands by itself.
func sameTarget(a, b v1alpha1.Allowance) bool {
	if a.Digest != b.Digest || a.Approval != b.Approval {
		return false // An approval is of one change, and stands by itself.
	}

	if (grantingField(a) == v1alpha1.MutationDelete) != (grantingField(b) == v1alpha1.MutationDelete) {
		return false
	}

	if External(a) || External(b) {
		return a.Relation == b.Relation && a.Policy == b.Policy && slices.Equal(a.Mutations, b.Mutations)
	}

	return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Mutation == b.Mutation
}

// SameGrant reports whether two allowances are about the same, and were given by
// the same policy for the same field to the same initiator, be it at another
// generation.
func SameGrant(a, b v1alpha1.Allowance) bool {
	return sameTarget(a, b) && a.Policy == b.Policy && a.Initiator == b.Initiator && grantingField(a) == grantingField(b)
}

// Consumed reports whether an allowance of an object has served.
//
// A managed resource's External allowance has when its gate has closed behind
// it. Any other has when the object's controller has seen the generation and
// finished; where a composition function reports on an XR, finished is what it
// says. One that the object's deletion gave serves until the object is gone, and one
// of an approval until the manager takes it away.
func Consumed(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if OfApproval(a) {
		return false
	}

	if External(a) && resource.IsManaged(u) {
		rec, err := ParseGate(u)

		return err == nil && rec != nil && a.Generation <= rec.Consumed
	}

	if p, ok := resource.ProgressOf(u); ok {
		return settled(p, a)
	}

	return Observed(a, resource.ObservedGeneration(u)) && resource.Converged(u)
}

// Observed reports whether a controller that has finished with a generation of the
// object is done with an allowance of it. One that a change within a generation
// gave takes the next one.
func Observed(a v1alpha1.Allowance, generation int64) bool {
	switch {
	case grantingField(a) == v1alpha1.MutationDelete:
		return false
	case RequestOf(a) > 0:
		return generation > a.Generation
	default:
		return generation >= a.Generation
	}
}

// OfDeletion reports whether a managed resource carries an allowance because it is
// to be deleted.
func OfDeletion(a v1alpha1.Allowance) bool {
	return External(a) && grantingField(a) == v1alpha1.MutationDelete
}

// Used reports whether a child's trace names an allowance of its parent: the child
// has made use of it. A child that the request made which gave the allowance was
// made as that has it.
func Used(trace []v1alpha1.TraceEntry, a v1alpha1.Allowance) bool {
	last := len(a.Trace) - 1

	return slices.ContainsFunc(trace, func(e v1alpha1.TraceEntry) bool {
		if e.Initiator != a.Initiator || last < 0 || len(e.Trace) != last+2 || !slices.EqualFunc(e.Trace[:last], a.Trace[:last], sameHop) {
			return false
		}

		hop := e.Trace[last]
		if e.Field == v1alpha1.MutationCreate && hop.Field == v1alpha1.MutationCreate {
			hop.Field = a.Trace[last].Field
		}

		return sameHop(hop, a.Trace[last])
	})
}

// sameHop compares a hop as two objects carry it. These are a parent and its child, so
// that they have the hop from one another, and no other namespace is possible. One
// ChangeApproval gives several allowances by one hop: their digests tell them apart.
func sameHop(a, b v1alpha1.Hop) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Generation == b.Generation && a.Request == b.Request && a.Field == b.Field &&
		a.Attestations[v1alpha1.AttestationDigest] == b.Attestations[v1alpha1.AttestationDigest]
}

// grantingField is the field whose change gave the allowance.
func grantingField(a v1alpha1.Allowance) string {
	if n := len(a.Trace); n > 0 {
		return a.Trace[n-1].Field
	}

	return ""
}

// Unconsumed returns the allowances of an object that have not served yet, in
// order; of others the actions of other systems, which last.
func Unconsumed(u *unstructured.Unstructured, list []v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range list {
		if !Consumed(u, a) {
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
