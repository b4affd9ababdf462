// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// recordEvent records an event on a window. The same news has the same name, so that it
// is reported once, whoever comes to report it again.
func (w *Reconciler) recordEvent(ctx context.Context, u *v1alpha1.UpgradeAllowance, n upgradeallowance.News, now time.Time) error {
	if err := client.IgnoreAlreadyExists(w.client.Create(ctx, upgradeallowance.Event(u, n, now))); err != nil {
		return fmt.Errorf("cannot record an event on UpgradeAllowance %q: %w", u.GetName(), err)
	}

	return nil
}
