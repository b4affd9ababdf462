// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stampMode writes on a managed resource that it is composed in mode Audit, so
// that its gate is taken away: what only is reported has to get outside, and be
// deleted there. Once that is over the record stays, without the mode.
func (r composed) stampMode(desired *unstructured.Unstructured) {
	if desired == nil || !resource.IsManaged(desired) {
		return
	}

	rec, err := management.ParseDesired(desired)

	switch {
	case r.mode == v1alpha1.ModeAudit:
		rec.Mode = v1alpha1.ModeAudit
		annotate(desired, v1alpha1.AnnotationDesiredPolicies, management.FormatDesired(rec))
		dropUnused(desired)
	case err == nil && rec.Mode == v1alpha1.ModeAudit:
		rec.Mode = ""
		annotate(desired, v1alpha1.AnnotationDesiredPolicies, management.FormatDesired(rec))
	}
}

// switches reports whether the observed managed resource does not say yet whether it
// is to have a gate.
func (r composed) switches() bool {
	return management.Audited(r.Observed) != (r.mode == v1alpha1.ModeAudit)
}

// dropUnused takes away the allowances that would open a gate where there is none.
func dropUnused(u *unstructured.Unstructured) {
	list, err := allowance.Parse(u)
	if err != nil || !managed.Free(u) {
		return
	}

	if left := managed.Unopened(list); len(left) < len(list) {
		annotate(u, v1alpha1.AnnotationAllowances, allowance.FormatList(left))
	}
}
