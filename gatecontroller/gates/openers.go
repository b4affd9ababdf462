// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// Openers reads the windows that open gates by themselves.
type Openers struct{ Reader client.Reader }

// list returns them, in force or not; they are not to be modified.
func (o Openers) list(ctx context.Context) ([]v1alpha1.UpgradeAllowance, error) {
	list := &v1alpha1.UpgradeAllowanceList{}
	if err := o.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list UpgradeAllowances: %w", err)
	}

	var out []v1alpha1.UpgradeAllowance

	for i := range list.Items {
		if len(gate.GivesBy(&list.Items[i])) > 0 {
			out = append(out, list.Items[i])
		}
	}

	return out, nil
}
