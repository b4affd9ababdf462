// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
)

// Other is another resource of the Composition that is the same object.
type Other struct {
	// Name of it in the Composition.
	Name string
	// Desired state of it; nil where none is.
	Desired *unstructured.Unstructured
}

// Others finds what a Composition gives another name while it is the same object,
// because it says how that is called: Crossplane deletes what has the former name,
// and applies the other one to what is there. It returns the other of each, by the
// name of the one; of several new names for one object the first in the alphabet.
func Others(xr *unstructured.Unstructured, observed, desired map[string]*unstructured.Unstructured) map[string]*Other {
	out := map[string]*Other{}
	names := slices.Sorted(maps.Keys(desired))

	for _, former := range slices.Sorted(maps.Keys(observed)) {
		for _, name := range names {
			if _, there := observed[name]; there || !sameObject(xr, observed[former], desired[name]) {
				continue
			}

			out[name] = &Other{Name: former, Desired: desired[former]}
			if out[former] == nil {
				out[former] = &Other{Name: name, Desired: desired[name]}
			}
		}
	}

	return out
}

// sameObject reports whether desired state is of an observed object. All that a
// namespaced XR composes is in its namespace.
func sameObject(xr, observed, desired *unstructured.Unstructured) bool {
	namespace := xr.GetNamespace()
	if namespace == "" {
		namespace = desired.GetNamespace()
	}

	return desired.GetName() != "" && desired.GetName() == observed.GetName() && namespace == observed.GetNamespace() &&
		desired.GroupVersionKind().GroupKind() == observed.GroupVersionKind().GroupKind()
}

// renamed is what becomes of an object that has another name in the Composition
// now: as of one of another kind, it is deleted and made anew, or stays.
func (r composed) renamed(asker *asker, other *Other, room int) Result {
	if r.Observed == nil {
		return r.again(asker, other, room)
	}

	r.Desired = other.Desired

	return r.swap(asker, other, room)
}

// again is what becomes of a new resource that is an object which is composed
// already: applied to that it would change it, and not create anything.
func (r composed) again(asker *asker, other *Other, room int) Result {
	if other.Desired == nil {
		return Result{} // It is made once the former one is gone, which says so.
	}

	h := v1alpha1.HeldChange{Field: v1alpha1.MutationCreate, Missing: fmt.Sprintf(
		"composed resource %s is %s already: remove one of them from the Composition, or give it another metadata.name",
		other.Name, condition.Describe(r.Desired))}
	held := condition.Held{Resource: r.unmade(r.Desired), Passed: r.mode == v1alpha1.ModeAudit, Change: r.listed(h, finding.Approvable{})}

	if r.mode != v1alpha1.ModeAudit {
		return Result{Held: []condition.Held{held}}
	}

	out := r.create(asker, room)
	out.Held = append(out.Held, held)

	return out
}
