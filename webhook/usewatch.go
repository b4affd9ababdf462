// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// watchAgain is how long a watch that ended is not begun again.
const watchAgain = 200 * time.Millisecond

// await watches the object of a request until it is known whether that is
// stored, or the context ends. The answer to the request does not wait for that.
func (u *Uses) await(ctx context.Context, ask *decision.Request, use upgradeallowance.Use) bool {
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return false
	case <-u.ctx.Done():
		return false
	}

	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	defer context.AfterFunc(u.ctx, cancel)() //nolint:contextcheck // The end of the process ends it too.

	for ctx.Err() == nil {
		answer, err := u.observe(ctx, ask, use)
		if err != nil && ctx.Err() == nil {
			u.log.V(1).Info("Cannot watch whether a change is stored yet", "kind", objectOf(ask).GetKind(),
				"namespace", objectOf(ask).GetNamespace(), "name", objectOf(ask).GetName(), "problem", err.Error())
		}

		if answer != upgradeallowance.NotYet {
			return answer == upgradeallowance.Stored
		}

		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}

	return false
}

// observe watches an object from the version on that the request is about. Where
// the API server has forgotten what came next, it judges by what is there now.
func (u *Uses) observe(ctx context.Context, ask *decision.Request, use upgradeallowance.Use) (upgradeallowance.Answer, error) {
	list := &unstructured.UnstructuredList{}
	gvk := objectOf(ask).GroupVersionKind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))

	opts := &client.ListOptions{Namespace: objectOf(ask).GetNamespace(), Raw: &metav1.ListOptions{}}
	if ask.Old != nil {
		opts.Raw.ResourceVersion = ask.Old.GetResourceVersion()
	}

	w, err := u.client.Watch(ctx, list, opts, client.MatchingFields{"metadata.name": objectOf(ask).GetName()})
	if err != nil {
		return u.observeNow(ctx, ask, use, err)
	}
	defer w.Stop()

	for e := range w.ResultChan() {
		next, ok := e.Object.(*unstructured.Unstructured)

		switch {
		case e.Type == watch.Error || !ok:
			return u.observeNow(ctx, ask, use, apierrors.FromObject(e.Object))
		case e.Type == watch.Bookmark:
		default:
			if answer := use.Judge(next, e.Type == watch.Deleted); answer != upgradeallowance.NotYet {
				return answer, nil
			}
		}
	}

	return upgradeallowance.NotYet, nil
}

// observeNow judges by what is there now, after a watch that failed because it is
// too late for it; any other failure is returned.
func (u *Uses) observeNow(
	ctx context.Context, ask *decision.Request, use upgradeallowance.Use, failure error,
) (upgradeallowance.Answer, error) {
	if !apierrors.IsResourceExpired(failure) && !apierrors.IsGone(failure) {
		return upgradeallowance.NotYet, fmt.Errorf("cannot watch it: %w", failure)
	}

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(objectOf(ask).GroupVersionKind())

	err := u.client.Get(ctx, client.ObjectKeyFromObject(objectOf(ask)), live)

	switch {
	case apierrors.IsNotFound(err) && ask.Operation == decision.OperationDelete:
		return upgradeallowance.Stored, nil
	case apierrors.IsNotFound(err):
		return upgradeallowance.Lost, nil
	case err != nil:
		return upgradeallowance.NotYet, fmt.Errorf("cannot get it: %w", err)
	case ask.Old != nil && live.GetResourceVersion() == ask.Old.GetResourceVersion():
		return upgradeallowance.NotYet, nil
	default:
		return use.Judge(live, false), nil
	}
}
