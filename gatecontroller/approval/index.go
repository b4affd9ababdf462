// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// IndexedField is by which the cache finds the ChangeApprovals of a PendingChange.
const IndexedField = "spec.pendingChange"

// Index has the cache find ChangeApprovals by the PendingChange that they name. It is called
// before the cache is started.
func Index(indexer client.FieldIndexer) error {
	if err := indexer.IndexField(context.Background(), &v1alpha1.ChangeApproval{}, IndexedField, Named); err != nil {
		return fmt.Errorf("cannot index ChangeApprovals: %w", err)
	}

	return nil
}

// Named returns the name of the PendingChange that a ChangeApproval names.
func Named(obj client.Object) []string {
	cha, ok := obj.(*v1alpha1.ChangeApproval)
	if !ok {
		return nil
	}

	return []string{cha.Spec.PendingChange}
}
