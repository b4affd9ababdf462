// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// orphaning is the change of a Composition that no longer asks for Delete in the
// management policies of a managed resource: with the resource, the external
// object would not be deleted any more. That has to be asked for as a change of
// the field would be, which itself is the gate's. False where there is none.
func (f *facts) orphaning() (change.Change, bool) {
	const asks = v1alpha1.AnnotationManagementPolicies

	if f.Old == nil || f.New == nil || resource.Annotation(f.Old, asks) == resource.Annotation(f.New, asks) || !resource.IsManaged(f.New) {
		return change.Change{}, false
	}

	was, wasErr := allowance.ParseManagementPolicies(f.Old)
	is, isErr := allowance.ParseManagementPolicies(f.New)

	// Paused, a resource is neither deleted nor orphaned.
	if wasErr != nil || isErr != nil || len(is) == 0 || !deletes(was) || deletes(is) {
		return change.Change{}, false
	}

	at := change.Path{fieldpath.Field("spec"), fieldpath.Field("managementPolicies")}

	return change.Change{Path: at, Field: at.String(), From: resource.Values(was), To: resource.Values(is)}, true
}

func deletes(policies []string) bool {
	return slices.Contains(gate.Acting(policies), gate.ActionDelete)
}
