// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// CarriesApproval reports at a glance whether an object may carry what a ChangeApproval gave.
func CarriesApproval(u *unstructured.Unstructured) bool {
	return strings.Contains(resource.Annotation(u, v1alpha1.AnnotationAllowances), "\n  digest: ")
}

// SameApproval reports whether two allowances are of the same approval of the same change, or
// both of none.
func SameApproval(a, b v1alpha1.Allowance) bool {
	return a.Digest == b.Digest && a.Approval == b.Approval
}
