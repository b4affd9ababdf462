// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// Conditions that upjet sets besides the runtime's.
const (
	typeAsyncOperation     xpv2.ConditionType = "AsyncOperation"
	typeLastAsyncOperation xpv2.ConditionType = "LastAsyncOperation"
)

// operationTimeout is how long a change in the background may take.
const operationTimeout = time.Minute

// asynchronous makes each change in the background. What it tells the runtime
// and writes into the status, and when, is what upjet's asynchronous client does.
type asynchronous struct {
	plain

	operation *operation
	kube      client.Client
	again     chan<- event.TypedGenericEvent[*Server]
}

// Observe says that all is well while a change is under way, and looks otherwise.
func (a *asynchronous) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	if _, running, _ := a.operation.under(); running {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}

	a.operation.forget(true)

	o, err := a.plain.Observe(ctx, mg)

	s, ok := mg.(*Server)
	if !ok || err != nil {
		return o, err
	}

	if s.has(Announcing) {
		s.SetConditions(operationCondition("Finished")) // Nobody may have told that it is.
	}

	if o.ResourceExists && o.ResourceUpToDate && !meta.WasDeleted(mg) {
		s.SetConditions(lastOperation(nil), xpv2.ReconcileSuccess())
		a.operation.forget(false)
	}

	return o, nil
}

// Create starts to make the external object.
func (a *asynchronous) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, a.start(ctx, mg, external.Create, func(ctx context.Context, s *Server) error {
		_, err := a.plain.Create(ctx, s)

		return err
	})
}

// Update starts to change it.
func (a *asynchronous) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, a.start(ctx, mg, external.Update, func(ctx context.Context, s *Server) error {
		_, err := a.plain.Update(ctx, s)

		return err
	})
}

// Delete starts to take it away, once.
func (a *asynchronous) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	if verb, _, _ := a.operation.under(); verb == external.Delete {
		return managed.ExternalDelete{}, nil
	}

	return managed.ExternalDelete{}, a.start(ctx, mg, external.Delete, func(ctx context.Context, s *Server) error {
		_, err := a.plain.Delete(ctx, s)

		return err
	})
}

// start makes a change in the background. The error is that of the last one.
func (a *asynchronous) start(
	ctx context.Context, mg resource.Managed, verb external.Verb, do func(context.Context, *Server) error,
) error {
	s, ok := mg.(*Server)
	if !ok {
		return errNoServer
	}

	if !a.operation.start(verb) {
		running, _, _ := a.operation.under()

		return fmt.Errorf("cannot %s %q: %s is still under way", verb, s.GetName(), running)
	}

	_, _, last := a.operation.under()

	if s.has(Announcing) {
		s.SetConditions(operationCondition("Ongoing"))
	}

	was, ok := s.DeepCopyObject().(*Server)
	if !ok {
		return errNoServer
	}

	go a.run(context.WithoutCancel(ctx), was, verb, do) // The reconcile ends before.

	return last
}

// run makes a change, and shows how it ended.
func (a *asynchronous) run(ctx context.Context, s *Server, verb external.Verb, do func(context.Context, *Server) error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()

	err := do(ctx, s)
	if err != nil {
		err = fmt.Errorf("async %s failed: %w", verb, err)
	}

	a.operation.end(err)

	if tellErr := a.tell(ctx, s, err); tellErr != nil {
		log.Log.Info("Cannot tell how a change ended", "name", s.GetName(), "problem", tellErr.Error())
	}

	a.again <- event.TypedGenericEvent[*Server]{Object: s}
}

// tell writes how a change ended into the status, for no generation in
// particular.
func (a *asynchronous) tell(ctx context.Context, s *Server, ended error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &Server{}
		if err := a.kube.Get(ctx, client.ObjectKeyFromObject(s), live); err != nil {
			return client.IgnoreNotFound(err)
		}

		live.SetConditions(lastOperation(ended), operationCondition("Finished"))

		if ended != nil {
			live.SetConditions(xpv2.ReconcileError(ended))
		} else {
			live.SetConditions(xpv2.ReconcileSuccess())
		}

		return client.IgnoreNotFound(a.kube.Status().Update(ctx, live))
	})
}

// lastOperation says how the last change in the background ended.
func lastOperation(err error) xpv2.Condition {
	c := xpv2.Condition{
		Type: typeLastAsyncOperation, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: "Success",
	}

	if err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ApplyFailure", err.Error()
	}

	return c
}

// operationCondition says how far a change in the background is.
func operationCondition(reason xpv2.ConditionReason) xpv2.Condition {
	return xpv2.Condition{
		Type: typeAsyncOperation, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: reason,
	}
}
