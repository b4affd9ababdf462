// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// MayDelete says whether a managed resource can be deleted without orphaning
// its external resource by accident: its gate is open for Delete, or its
// Composition asked to orphan.
func MayDelete(u *unstructured.Unstructured) bool {
	if slices.Contains(normalize(resource.Strings(u.Object, "spec", "managementPolicies")), ActionDelete) {
		return true
	}

	if resource.String(u.Object, "spec", "deletionPolicy") == "Orphan" {
		return true
	}

	desired, err := Desired(u)

	return err == nil && !slices.Contains(desired, ActionDelete)
}

// Pending says whether a managed resource is on its way: its gate is not
// closed, an allowance has not been used, or its provider has not caught up.
func Pending(u *unstructured.Unstructured) bool {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
		return true
	}

	list, err := allowance.Parse(u)
	if err != nil {
		return false
	}

	for _, a := range list {
		if allowance.External(a) && a.Generation > rec.Consumed {
			return true
		}
	}

	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && c.ObservedGeneration != 0 && c.ObservedGeneration < resource.Generation(u)
}
