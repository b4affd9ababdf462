// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// withoutGate holds a resource that is composed in a version of its kind without spec.managementPolicies: it would be stored
// with their default, and an open gate.
func (r composed) withoutGate(gatedIn string) Result {
	gv, _ := schema.ParseGroupVersion(r.Desired.GetAPIVersion())
	h := v1alpha1.HeldChange{
		Field:   "apiVersion",
		Missing: fmt.Sprintf("its gate is spec.managementPolicies, which %s does not have: compose it in %s", gv.Version, gatedIn),
	}

	if r.Observed == nil {
		h.Field = v1alpha1.MutationCreate

		return Result{
			Held:    []condition.Held{{Resource: r.unmade(r.Desired), Change: r.listed(h, finding.Approvable{})}},
			Unbuilt: !resource.Ready(r.XR),
		}
	}

	h.From, h.To = r.Observed.GetAPIVersion(), r.Desired.GetAPIVersion()
	out := r.kept()
	out.Held = append(out.Held, r.heldAsIs(h))

	return out
}
