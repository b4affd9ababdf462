// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
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

// Pending says what keeps a managed resource from being settled: a gate that
// is not closed, an allowance that has not been used, or a provider that has
// not caught up. Empty when nothing does.
func Pending(u *unstructured.Unstructured) string {
	name := fmt.Sprintf("%s %s", u.GetKind(), u.GetName())

	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
		return name + ": its gate is not closed"
	}

	list, err := allowance.Parse(u)
	if err != nil {
		return ""
	}

	for _, a := range list {
		if allowance.External(a) && a.Generation > rec.Consumed {
			return name + ": its gate has not opened yet"
		}
	}

	if c, ok := resource.ConditionOf(u, resource.ConditionSynced); ok && c.ObservedGeneration != 0 && c.ObservedGeneration < resource.Generation(u) {
		return name + ": its provider has not caught up"
	}

	return ""
}
