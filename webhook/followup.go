// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errBusy is the cause when others write an object all the time.
var errBusy = errors.New("somebody else writes it all the time: try again")

// How often and how long a follow-up checks for the change that it is about. The
// API server stores it once every webhook has answered, or never.
const (
	scaledFirst   = 5 * time.Millisecond
	scaledFactor  = 1.5
	scaledSteps   = 40
	scaledLongest = 500 * time.Millisecond
	scaledTimeout = 15 * time.Second
)

// followUps stamp objects a moment after the change that the stamps are about.
type followUps struct {
	running sync.WaitGroup
}

func (f *followUps) wait() { f.running.Wait() }

// follow stamps a scaled object once it is.
func (f *followUps) follow(ctx context.Context, j *Judge, s scaling) {
	// The answer to the request must not wait for what follows it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scaledTimeout)

	f.running.Go(func() {
		defer cancel()

		// Not ExponentialBackoff, which ends with the first delay that is as long as any may be.
		delay := wait.Backoff{Duration: scaledFirst, Factor: scaledFactor, Steps: scaledSteps, Cap: scaledLongest}.DelayFunc()

		err := delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) { return s.stamp(ctx, j) })
		if wait.Interrupted(err) {
			err = s.unread // Without that the change was not stored, as another webhook may have refused it.
		}

		if err != nil {
			j.Log.Error(err, "Cannot stamp what was scaled", "kind", s.Request.Old.GetKind(),
				"namespace", s.Request.Old.GetNamespace(), "name", s.Request.Old.GetName(), "user", s.Request.User.Name)
		}
	})
}

// before is the scaled object as if it were not.
func (s *scaling) before(live *unstructured.Unstructured) *unstructured.Unstructured {
	old := live.DeepCopy()
	old.SetGeneration(max(0, resource.Generation(live)-1))

	unstructured.RemoveNestedField(old.Object, s.path...)

	if s.from != nil {
		_ = unstructured.SetNestedField(old.Object, s.from, s.path...) // It was there before.
	}

	return old
}

// noting is an authorizer, or nil, of which is noted that it could not be asked.
func (s *scaling) noting(by authorizer.UnconditionalAuthorizer) authorizer.UnconditionalAuthorizer {
	if by == nil {
		return nil
	}

	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		got, why, err := by.Authorize(ctx, a)
		if err != nil {
			s.unread = err
		}

		return got, why, err
	})
}

// stamp stamps the object if it is scaled by now, and reports whether there is no
// more to do.
func (s *scaling) stamp(ctx context.Context, j *Judge) (bool, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.Request.Old.GroupVersionKind())

	if err := j.Live.Get(ctx, client.ObjectKeyFromObject(s.Request.Old), live); err != nil {
		return apierrors.IsNotFound(err), nil // Gone, or to be tried again.
	}

	if live.GetUID() != s.Request.Old.GetUID() {
		return true, nil
	}

	now, _ := resource.Value(live.Object, s.path...)
	if !change.Equal(now, s.to) {
		return false, nil // Not yet, or never: another webhook may have refused it.
	}

	// Decided anew, for what else is in the object may have changed meanwhile; and asked
	// anew, for the request has ended.
	ask := s.Request
	ask.Old, ask.New = s.before(live), live
	ask.Basis.Params, ask.Authorizer = j.outside(ctx)
	ask.Authorizer = s.noting(ask.Authorizer)

	s.unread = nil

	d := decision.Decide(ask)
	if s.unread = cmp.Or(s.unread, policy.Unread(d.Problems...)); s.unread != nil {
		return false, nil //nolint:nilerr // Not yet: that it is not known who may is no edit.
	}

	changed := stamps(live, d.Object)
	if len(changed) == 0 {
		return true, nil
	}

	err := j.annotate(ctx, live, changed)
	if apierrors.IsConflict(err) {
		return false, nil
	}

	return true, err
}
