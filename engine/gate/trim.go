// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Trim takes away from an object what no decision reads, as [resource.Trim]
// does: [PlanFor] plans the same without it. A managed resource whose gate has
// nothing to compare, most of them most of the time, is left without what is
// asked for and of what the provider shows, but for what says which external object it is. The object is modified.
func Trim(u *unstructured.Unstructured, more identity.Fields) {
	if resource.IsManaged(u) && compares(u) {
		resource.TrimBookkeeping(u)

		return
	}

	if !resource.IsManaged(u) {
		resource.Trim(u)

		return
	}

	identity.Keep(u, resource.Trim, more)
}

// compares reports whether a plan may observe more of a managed resource than its
// annotations and conditions: where the gate is open or about to be opened, and
// where the external object drifted or is gone.
func compares(u *unstructured.Unstructured) bool {
	rec, err := managed.ParseRecord(u)
	if err != nil || rec == nil && management.Governed(u) || rec != nil && rec.State != v1alpha1.GateClosed ||
		managed.Lost(u, rec) || managed.ReplacedOutside(u, rec) || len(managed.Drift(u)) > 0 {
		return true
	}

	list, err := allowance.Parse(u)

	return err != nil || slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
		return allowance.External(a) && !managed.Foreign(a.Mutations)
	})
}
