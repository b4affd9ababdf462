// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// published notes that the status of a window says what there is to say.
func (u *Uses) published(key upgradeallowance.Key, w *v1alpha1.UpgradeAllowance) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if c := u.counts[key]; c.uses == 0 && over(w, time.Now()) {
		delete(u.counts, key)
	} else {
		c.due = time.Now().Add(writeEvery)
	}
}

// publish has the status of a window say how often it was used.
func (u *Uses) publish(ctx context.Context, key upgradeallowance.Key, sum int64) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		was := &v1alpha1.UpgradeAllowance{}
		if err := u.client.Get(ctx, client.ObjectKey{Name: key.Name}, was); err != nil {
			return err
		}

		is := was.DeepCopy()
		upgradeallowance.Count(is, sum, time.Now())

		if was.GetUID() != key.UID || equality.Semantic.DeepEqual(was.Status, is.Status) {
			return nil
		}

		patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})

		return u.client.Status().Patch(ctx, is, patch, client.FieldOwner(FieldManager))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of UpgradeAllowance %q: %w", key.Name, err)
	}

	return nil
}

// toWrite reports whether the status of a window is to be written now: it is over, or
// it is time, and no other replica has written to it lately.
func toWrite(u *v1alpha1.UpgradeAllowance, at, now time.Time) bool {
	if over(u, now) {
		return true
	}

	return !now.Before(at) && !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Subresource == "status" && e.Time != nil && now.Sub(e.Time.Time) < writeEvery
	})
}

// over reports whether a window's time is.
func over(u *v1alpha1.UpgradeAllowance, now time.Time) bool {
	return !now.Before(u.Spec.ValidUntil.Time)
}
