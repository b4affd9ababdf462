// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// anything matches every group, or every resource.
const anything = "*"

// Names reports whether the Enforcement is about a resource by its name, or by that
// of its group, and not by a rule about whatever there is. All of the core group
// is whatever there is, too.
func (e *Enforcement) Names(gr schema.GroupResource) bool {
	return e.Covers(gr) && slices.ContainsFunc(e.spec.Match.ResourceRules, func(r v1alpha1.ResourceRule) bool {
		return slices.Contains(r.APIGroups, gr.Group) &&
			(slices.Contains(r.Resources, gr.Resource) || gr.Group != "" && slices.Contains(r.Resources, anything))
	})
}
