// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// bookkeeping says whether Crossplane writes an object of its own kinds, in which it
// keeps books of what belongs together. Other kinds may have fields of the same
// names. What a Composition wishes of them is no bookkeeping: a composition function
// is asked about nothing else.
func (d *decider) bookkeeping() bool {
	return d.User.Name == d.Settings.Crossplane && d.Action == "" && crossplanes(cmp.Or(d.Old, d.New))
}

// crossplanes says whether an object is an XR, a Claim or a managed resource. A new
// XR or Claim shows it by its finalizer, before anything else is written to it.
func crossplanes(u *unstructured.Unstructured) bool {
	return resource.IsComposite(u) || resource.IsClaim(u) || resource.IsManaged(u) ||
		resource.Composing(u) || slices.Contains(u.GetFinalizers(), finalizerClaim)
}

// finalizerClaim is Crossplane's own on a Claim.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/claim/reconciler.go.
const finalizerClaim = "finalizer.apiextensions.crossplane.io"
