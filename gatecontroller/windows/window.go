// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// evaluateEvery is how often a window is evaluated though nothing happened.
const evaluateEvery = time.Minute

// Reconciler maintains the status of UpgradeAllowances, and reports when one starts, is
// used first, and ends.
type Reconciler struct {
	client  client.Client
	targets *targets
	now     func() time.Time
	// wake asks for windows to be reconciled.
	wake chan event.TypedGenericEvent[string]

	mu sync.Mutex
	// said is what the configuration says of windows.
	said map[types.UID]said
}

// said is what the configuration says of one window.
type said struct {
	ready        metav1.Condition
	typeChecking []v1alpha1.TypeCheckingWarning
}

// New makes the windows' reconciler.
func New(mgr ctrl.Manager, now func() time.Time) *Reconciler {
	w := &Reconciler{
		client: mgr.GetClient(), now: now,
		wake: make(chan event.TypedGenericEvent[string]),
	}
	w.targets = &targets{
		config: mgr.GetConfig(), http: mgr.GetHTTPClient(), scheme: mgr.GetScheme(), mapper: mgr.GetRESTMapper(),
		newCache: cache.New, changed: w.enqueue, running: map[target]*targetWatch{},
	}

	return w
}

// SetupWithManager has them reconciled by the one manager that leads.
func (w *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ctl, err := w.controller(mgr.GetCache(), mgr.GetLogger())
	if err != nil {
		return err
	}

	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer w.targets.stop()

		return ctl.Start(ctx)
	}))
	if err != nil {
		return fmt.Errorf("cannot add the controller of windows: %w", err)
	}

	return nil
}

// Reconcile reconciles one window.
func (w *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// 1. Read it.
	u := &v1alpha1.UpgradeAllowance{}
	if err := w.client.Get(ctx, req.NamespacedName, u); err != nil {
		if apierrors.IsNotFound(err) {
			w.targets.release(ctx, req.Name)
		}

		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	now := w.now()
	// 2. Look at what it waits for.
	seen, settled, err := w.observe(ctx, u, now)
	if err != nil {
		return reconcile.Result{}, err
	}

	if !settled {
		return reconcile.Result{RequeueAfter: syncSoon}, nil
	}

	// 3. Say what comes of it.
	state := upgradeallowance.Evaluate(u, seen, now)

	err = w.report(ctx, u, state, now)

	switch {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, err
	case state.Reason == v1alpha1.ReasonNotObserved:
		return reconcile.Result{RequeueAfter: syncSoon}, nil
	case state.Again.IsZero():
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: min(evaluateEvery, max(state.Again.Sub(now), time.Millisecond))}, nil
	}
}

// observe reads what a window's activateWhen names, while that matters. False
// where it is too soon to know.
func (w *Reconciler) observe(ctx context.Context, u *v1alpha1.UpgradeAllowance, now time.Time) (upgradeallowance.Observation, bool, error) {
	if !upgradeallowance.Waits(u, now) || len(upgradeallowance.Validate(u)) > 0 {
		w.targets.release(ctx, u.GetName())

		return upgradeallowance.Observation{}, true, nil
	}

	return w.targets.observe(ctx, u.GetName(), targetOf(u.Spec.ActivateWhen), now)
}

// report writes the status, after it has reported what is new in it: whoever is
// stopped in between reports the same again, which the API server then knows.
func (w *Reconciler) report(ctx context.Context, u *v1alpha1.UpgradeAllowance, state upgradeallowance.State, now time.Time) error {
	ready, typeChecking := w.says(u)
	next := upgradeallowance.Next(u, state, ready, now)
	next.Status.TypeChecking = typeChecking

	if equality.Semantic.DeepEqual(u.Status, next.Status) {
		return nil
	}

	for _, n := range next.News {
		if err := w.recordEvent(ctx, u, n, now); err != nil {
			return err
		}
	}

	is := u.DeepCopy()
	is.Status = next.Status

	if err := w.client.Status().Patch(ctx, is, object.MergeFrom(u), client.FieldOwner(object.FieldManager)); err != nil {
		return fmt.Errorf("cannot write the status of UpgradeAllowance %q: %w", u.GetName(), err)
	}

	return nil
}

// says is the Ready condition of a window, and what checking it finds; what it has where the
// configuration has not said anything yet.
func (w *Reconciler) says(u *v1alpha1.UpgradeAllowance) (*metav1.Condition, []v1alpha1.TypeCheckingWarning) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if s, ok := w.said[u.GetUID()]; ok {
		return &s.ready, s.typeChecking
	}

	return meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionReady), u.Status.TypeChecking
}

// Checks are what the configuration finds of a window besides whether it can be used.
type Checks struct {
	// Lacks says in words which rights are missing; empty for none.
	Lacks func(*v1alpha1.UpgradeAllowance) string
	// TypeChecking are the warnings of its status.
	TypeChecking func(*v1alpha1.UpgradeAllowance) []v1alpha1.TypeCheckingWarning
}

// SetReadiness takes what the configuration says of all windows there are, once
// webhooks and guards are as they say: which kinds are missing, and what it finds.
func (w *Reconciler) SetReadiness(ctx context.Context, list []v1alpha1.UpgradeAllowance, missing []kind.Name, checks Checks) {
	all := make(map[types.UID]said, len(list))

	var changed []string

	w.mu.Lock()

	for i := range list {
		u := &list[i]
		is := said{typeChecking: checks.TypeChecking(u)}
		is.ready = windowReadiness(u, missing, checks.Lacks(u), is.typeChecking)
		all[u.GetUID()] = is

		if was, ok := w.said[u.GetUID()]; !ok || was.ready != is.ready || !slices.Equal(was.typeChecking, is.typeChecking) {
			changed = append(changed, u.GetName())
		}
	}

	w.said = all
	w.mu.Unlock()

	w.enqueue(ctx, changed)
}

// enqueue has windows reconciled.
func (w *Reconciler) enqueue(ctx context.Context, names []string) {
	for _, name := range names {
		select {
		case w.wake <- event.TypedGenericEvent[string]{Object: name}:
		case <-ctx.Done():
			return
		}
	}
}

// windowReadiness reports whether a window is valid, its kinds are served and no right is
// missing. What we may not do with these kinds is said in words, and the first of what checking it finds.
func windowReadiness(
	u *v1alpha1.UpgradeAllowance, missing []kind.Name, lacks string, typeChecking []v1alpha1.TypeCheckingWarning,
) metav1.Condition {
	cond := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: u.GetGeneration()}
	lint := "kubectl get upgradeallowance " + u.GetName() + " -o yaml | kubectl kausality lint -f -"

	if errs := upgradeallowance.Validate(u); len(errs) > 0 {
		cond.Reason, cond.Message = v1alpha1.ReasonInvalid, message.Detailed(errs.ToAggregate().Error(), lint)

		return cond
	}

	if unknown := kind.Among(kind.OfPermissions(u.Spec.Allow), missing); unknown != "" {
		cond.Reason, cond.Message = v1alpha1.ReasonKindUnknown, "the API server serves no kind "+unknown

		return cond
	}

	if lacks != "" {
		cond.Reason, cond.Message = v1alpha1.ReasonRightsMissing, lacks

		return cond
	}

	cond.Status, cond.Reason, cond.Message = metav1.ConditionTrue, v1alpha1.ReasonInForce,
		"the API server asks Kausality about the kinds of the window; condition Active reports whether that is in force"

	if warnings := upgradeallowance.Warnings(u); len(warnings) > 0 {
		cond.Message = strings.Join(warnings, "; ")
	}

	if n := len(typeChecking); n > 0 {
		cond.Message += fmt.Sprintf("; but %s: %s", typeChecking[0].Field, typeChecking[0].Warning)
		if n > 1 {
			cond.Message += fmt.Sprintf("; status.typeChecking has %d more", n-1)
		}
	}

	cond.Message = message.Detailed(cond.Message, lint)

	return cond
}

// controller makes the controller of the windows.
func (w *Reconciler) controller(cch cache.Cache, log logr.Logger) (controller.Controller, error) {
	named := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})

	return object.NewController("window", w, controller.Options{Logger: log},
		source.Kind(cch, client.Object(&v1alpha1.UpgradeAllowance{}), &handler.EnqueueRequestForObject{}),
		source.TypedChannel(w.wake, named))
}
