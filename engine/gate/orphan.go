// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// Orphans reports whether a managed resource leaves its external resource behind
// when it is deleted, because that was asked for: by its deletion policy, by the
// management policies of its Composition, or by who released it.
func Orphans(u *unstructured.Unstructured) bool {
	if orphaned(u) {
		return true
	}

	desired, err := management.Desired(u)

	return err == nil && !slices.Contains(desired, management.ActionDelete)
}
