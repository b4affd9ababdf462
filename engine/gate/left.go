// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Left reports whether a managed resource needs its guards although nothing names
// or composes its kind any more: its gate is ours, and it is without the parent
// it had, or on its way out with it. Without guards it could be deleted, and what
// it stands for be lost. Parent is what its owner reference names, nil where that
// is gone; runs reports whether the function still runs for it.
func Left(u, parent *unstructured.Unstructured, runs bool) bool {
	if !management.Governed(u) {
		return false
	}

	if resource.Deleting(u) {
		return true
	}

	ref, ok := resource.ParentOf(u)
	if !ok || ref.UID == "" {
		return false // It never had one, or was released.
	}

	return parent == nil || !ref.Is(parent) || resource.Deleting(parent) || runs
}
