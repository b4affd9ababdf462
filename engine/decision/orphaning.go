// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
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
	const asks = v1alpha1.AnnotationDesiredPolicies

	if f.Old == nil || f.New == nil || resource.Annotation(f.Old, asks) == resource.Annotation(f.New, asks) || !resource.IsManaged(f.New) {
		return change.Change{}, false
	}

	was, wasErr := gate.ParseDesired(f.Old)
	is, isErr := gate.ParseDesired(f.New)

	if wasErr != nil { // Perhaps it did.
		was.Policies = []string{gate.ActionAll}
	}

	// Paused, a resource is neither deleted nor orphaned.
	if isErr != nil || len(is.Policies) == 0 || !deletes(was.Policies) || deletes(is.Policies) {
		return change.Change{}, false
	}

	at := change.Path{fieldpath.Field("spec"), fieldpath.Field("managementPolicies")}

	return change.Change{Path: at, Field: at.String(), From: resource.Values(was.Policies), To: resource.Values(is.Policies)}, true
}

func deletes(policies []string) bool {
	return slices.Contains(gate.Acting(policies), gate.ActionDelete)
}
