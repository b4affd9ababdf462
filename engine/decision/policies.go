// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// changeOfPolicies is the change of the actions that a Composition asks for in the management policies of a managed resource: with more of
// them its provider would do more outside than anybody asked for, and with fewer leave more as it is, or behind. That has to be asked
// for as a change of the field would be, which itself is the gate's. False where there is none.
func changeOfPolicies(o objects) (change.Change, bool) {
	const asks = v1alpha1.AnnotationDesiredPolicies

	if o.Old == nil || o.New == nil || resource.Annotation(o.Old, asks) == resource.Annotation(o.New, asks) || !resource.IsManaged(o.New) {
		return change.Change{}, false
	}

	was, wasErr := gate.ParseDesired(o.Old)
	is, isErr := gate.ParseDesired(o.New)

	if wasErr != nil { // Perhaps it asked for all.
		was.Policies = []string{gate.ActionAll}
	}

	before := was.Policies
	if len(before) == 0 {
		before = was.Before // It was paused.
	}

	// Nothing is known of what was asked for before; and paused, a resource is neither changed nor deleted nor orphaned.
	if isErr != nil || before == nil || len(is.Policies) == 0 || gate.Same(gate.Acting(before), gate.Acting(is.Policies)) {
		return change.Change{}, false
	}

	at := change.Path{fieldpath.Field("spec"), fieldpath.Field("managementPolicies")}

	return change.Change{Path: at, Field: at.String(), From: resource.Values(before), To: resource.Values(is.Policies)}, true
}
