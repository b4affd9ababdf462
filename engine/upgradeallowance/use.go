// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// UsedBy returns the names of the windows that allowed at least one change of a request, in order. Whether the API server
// stores what is asked for is not known then.
func UsedBy(req *request.Request, d *decision.Decision) []string {
	if d.Answer().Refuses() || req.Operation == request.OperationDelete && resource.Deleting(req.Old) {
		return nil
	}

	var out []string

	for _, f := range d.Findings {
		if f.Verdict != finding.Allowed || f.Rule != finding.RuleUpgrade {
			continue
		}

		if req.Operation == request.OperationCreate && f.Change.Field != v1alpha1.MutationCreate {
			continue // What it is made of is nothing by itself.
		}

		for _, u := range req.Basis.Upgrades {
			if u.Object.GetName() == f.Policy {
				out = append(out, u.Object.GetName())
			}
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}
