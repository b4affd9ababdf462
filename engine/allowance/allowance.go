// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Covers says whether an allowance of a parent is about a change of a child of
// the given kind. External allowances are about no child.
func Covers(a v1alpha1.Allowance, kind schema.GroupKind, c change.Change) bool {
	if External(a) || a.Kind != kind.Kind || (a.APIGroup != "" && a.APIGroup != kind.Group) {
		return false
	}

	p, err := change.ParsePattern(a.Mutation)

	return err == nil && p.Covers(c.Path)
}

// External says whether an allowance is about the system behind a managed
// resource.
func External(a v1alpha1.Allowance) bool { return a.Relation == v1alpha1.RelationExternal }

// Merge adds allowances to those an object carries. An allowance of the same
// relation, group, kind and mutation from a newer generation replaces the
// older one in its place; of two from one generation the first stays.
func Merge(have, add []v1alpha1.Allowance) []v1alpha1.Allowance {
	out := slices.Clone(have)

	for _, a := range add {
		i := slices.IndexFunc(out, func(b v1alpha1.Allowance) bool { return key(a) == key(b) })

		switch {
		case i < 0:
			out = append(out, a)
		case out[i].Generation < a.Generation:
			out[i] = a
		}
	}

	return out
}

// key identifies what an allowance is about. External actions hang on the
// policy that grants them, for they ride along with that policy's mutations.
func key(a v1alpha1.Allowance) string {
	if External(a) {
		return strings.Join([]string{string(a.Relation), a.Policy, strings.Join(a.Mutations, ",")}, "|")
	}

	return strings.Join([]string{"Child", a.APIGroup, a.Kind, a.Mutation}, "|")
}

// Consumed says whether an allowance of an object has served: for a managed
// resource's External allowance, when its gate has closed behind it;
// otherwise when the object's controller has seen the generation and finished.
// Where a composition function reports on an XR, finished is what it says.
func Consumed(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if External(a) && resource.IsManaged(u) {
		rec, err := ParseGate(u)

		return err == nil && rec != nil && a.Generation <= rec.Consumed
	}

	if settled, ok := resource.SettledGeneration(u); ok {
		return settled >= a.Generation
	}

	return resource.ObservedGeneration(u) >= a.Generation && resource.Converged(u)
}

// Unconsumed returns the allowances of an object that have not served yet, in
// order.
func Unconsumed(u *unstructured.Unstructured, list []v1alpha1.Allowance) []v1alpha1.Allowance {
	var out []v1alpha1.Allowance

	for _, a := range list {
		if !Consumed(u, a) {
			out = append(out, a)
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
