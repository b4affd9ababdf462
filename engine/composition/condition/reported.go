// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Reported are the changes that the function of an XR says are held of what that composes, or in mode Audit are let pass, and
// how many more of both there are. False where it does not say: it has not run, its pipeline failed, or the record is of another
// version.
func Reported(xr *unstructured.Unstructured) (list []Held, more int, ok bool) {
	state, ok := resource.StateOf(xr)
	if !ok {
		return nil, 0, false
	}

	for _, c := range state.Changes {
		list = append(list, Held{Change: c, Resource: describeRef(c)})
	}

	for _, c := range state.Passed {
		list = append(list, Held{Change: c, Resource: describeRef(c), Passed: true})
	}

	return list, state.More + state.PassedMore, true
}

// describeRef describes the resource that a change is of, as [Held.Resource] does.
func describeRef(c v1alpha1.HeldChange) string {
	if c.Field == v1alpha1.MutationCreate {
		return Unmade(c.Ref.Kind, c.ComposedResource)
	}

	return c.Ref.Kind + " " + c.Ref.Name
}

// Unmade describes a resource that is not there yet.
func Unmade(kind, composed string) string { return kind + " of composed resource " + composed }
