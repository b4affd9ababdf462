// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// tally is where replicas add up how often windows were used, and what stays when
// they are restarted. It is no window, for whatever is written to these has
// Crossplane compose every XR anew that requires them; and a Lease, for those
// are what managers make for themselves.
type tally struct {
	client client.Client
	key    client.ObjectKey
}

// add adds uses to those of a window, of which it has base where it is not there
// yet, and returns their sum.
func (t tally) add(ctx context.Context, uid types.UID, base, uses int64) (int64, error) {
	var sum int64

	err := t.change(ctx, func(all map[types.UID]int64) {
		if _, ok := all[uid]; !ok {
			all[uid] = base
		}

		all[uid] += uses
		sum = all[uid]
	})

	return sum, err
}

// keep forgets those of all windows but some, and returns what is left. Which
// these are is asked for once it is known which are there.
func (t tally) keep(ctx context.Context, windows func() (map[types.UID]bool, error)) (map[types.UID]int64, error) {
	var (
		left   map[types.UID]int64
		failed error
	)

	err := t.change(ctx, func(all map[types.UID]int64) {
		var keep map[types.UID]bool

		if len(all) > 0 {
			keep, failed = windows()
		}

		if failed == nil {
			maps.DeleteFunc(all, func(uid types.UID, _ int64) bool { return !keep[uid] })
		}

		left = all
	})
	if failed != nil {
		return nil, failed
	}

	return left, err
}

// change changes it, again where another replica was faster.
func (t tally) change(ctx context.Context, how func(all map[types.UID]int64)) error {
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

	err := retry.OnError(retry.DefaultBackoff, again, func() error {
		lease := &coordinationv1.Lease{}

		err := t.client.Get(ctx, t.key, lease)
		if client.IgnoreNotFound(err) != nil {
			return err
		}

		all := read(lease)
		was := maps.Clone(all)
		how(all)

		if maps.Equal(was, all) {
			return nil
		}

		text, err2 := json.Marshal(all)
		if err2 != nil {
			return err2
		}

		if apierrors.IsNotFound(err) {
			lease.ObjectMeta = metav1.ObjectMeta{Namespace: t.key.Namespace, Name: t.key.Name, Labels: map[string]string{v1alpha1.LabelOwn: "true"}}
		}

		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationUses, string(text))

		if apierrors.IsNotFound(err) {
			return t.client.Create(ctx, lease, client.FieldOwner(FieldManager))
		}

		return t.client.Update(ctx, lease, client.FieldOwner(FieldManager))
	})
	if err != nil {
		return fmt.Errorf("cannot keep the uses of windows in Lease %q: %w", t.key, err)
	}

	return nil
}

// read reads what it says. What somebody else made of it, and cannot be read,
// counts as nothing: windows themselves say what they were used for before.
func read(lease *coordinationv1.Lease) map[types.UID]int64 {
	out := map[types.UID]int64{}
	if json.Unmarshal([]byte(lease.GetAnnotations()[v1alpha1.AnnotationUses]), &out) != nil || out == nil {
		return map[types.UID]int64{}
	}

	return out
}

// recall goes on with what was counted before we began, until the windows are
// over: who counted it may be gone. It forgets that of windows that are gone.
func (u *Uses) recall(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()

	list := &v1alpha1.UpgradeAllowanceList{}

	kept, err := u.tally.keep(ctx, func() (map[types.UID]bool, error) {
		if err := u.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("cannot list UpgradeAllowances: %w", err)
		}

		there := map[types.UID]bool{}
		for i := range list.Items {
			there[list.Items[i].GetUID()] = true
		}

		return there, nil
	})
	if err != nil {
		u.log.Error(err, "Cannot go on with the uses of windows yet")

		return false
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	for i := range list.Items {
		if w := &list.Items[i]; kept[w.GetUID()] > w.Status.Uses {
			u.counted(upgradeallowance.Key{Name: w.GetName(), UID: w.GetUID()})
		}
	}

	return true
}
