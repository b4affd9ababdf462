// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"slices"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const (
	// conflictDelay lets the cache catch up with a write by somebody else.
	conflictDelay = 50 * time.Millisecond
	// resolveSoon and resolveEvery are how soon kinds are looked up again that
	// were not served, or without a schema: at first the former, which doubles
	// each time up to the latter. The API server lists a new kind a moment
	// after its CRD says it is served.
	resolveSoon  = 250 * time.Millisecond
	resolveEvery = 10 * time.Second
	// resyncEvery is how often all is looked at though nothing happened.
	resyncEvery = time.Minute
)

// configuration keeps webhook configurations, guards and watches in line with
// the policies and kinds there are.
type configuration struct {
	client   client.Client
	reader   client.Reader
	resolver *resolver
	watches  *watches
	schemas  *schemas
	opts     Options

	// missing are the kinds that nothing served last, and wait is how long it
	// was to be until they are looked up again.
	missing []kindName
	wait    time.Duration
}

// Reconcile does all of it at once; the request says nothing.
func (c *configuration) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// 1. Read what is asked for.
	policies := &v1alpha1.AllowancePolicyList{}
	if err := c.reader.List(ctx, policies); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list policies: %w", err)
	}

	windows := &v1alpha1.UpgradeAllowanceList{}
	if err := c.reader.List(ctx, windows); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list upgrade allowances: %w", err)
	}

	// 2. Find the kinds.
	kinds, missing, err := c.resolver.resolve(ctx, names(policies.Items, windows.Items))
	if err != nil {
		return reconcile.Result{}, err
	}

	// 3. Guard and watch them before the webhook stamps them.
	if err := c.applyGuards(ctx, kinds); err != nil {
		return reconcile.Result{}, err
	}

	if err := c.watches.set(ctx, kinds); err != nil {
		return reconcile.Result{}, err
	}

	if err := c.applyWebhooks(ctx, kinds); err != nil {
		return reconcile.Result{}, err
	}

	// 4. Let functions find the policies, and say so.
	if err := c.label(ctx, policies.Items, windows.Items); err != nil {
		return reconcile.Result{}, err
	}

	complete := c.schemas.refresh(ctx, policies.Items, kinds)

	for i := range policies.Items {
		if err := c.report(ctx, &policies.Items[i], kinds, missing); err != nil {
			return reconcile.Result{}, err
		}
	}

	return reconcile.Result{RequeueAfter: c.again(missing, complete)}, nil
}

// again says when to look again.
func (c *configuration) again(missing []kindName, complete bool) time.Duration {
	known := slices.Equal(missing, c.missing)
	c.missing = missing

	switch {
	case len(missing) == 0 && complete:
		c.wait = 0

		return resyncEvery
	case !known || c.wait == 0:
		c.wait = resolveSoon
	default:
		c.wait = min(2*c.wait, resolveEvery)
	}

	return c.wait
}

// names are the kinds that policies and windows name, each once.
func names(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) []kindName {
	out := make([]kindName, 0, len(policies))

	for _, p := range policies {
		out = append(out, policyKinds(p.Spec)...)
	}

	for _, w := range windows {
		out = append(out, permissionKinds(w.Spec.Allow)...)
	}

	slices.SortFunc(out, func(a, b kindName) int {
		if a.String() < b.String() {
			return -1
		}

		return 1
	})

	return slices.Compact(out)
}

func policyKinds(spec v1alpha1.AllowancePolicySpec) []kindName {
	return append(permissionKinds(spec.Allow), kindName{group: spec.Match.APIGroup, kind: spec.Match.Kind})
}

func permissionKinds(allow []v1alpha1.Permission) []kindName {
	out := make([]kindName, 0, len(allow))

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal {
			out = append(out, kindName{group: p.APIGroup, kind: p.Kind})
		}
	}

	return out
}

// setup runs the configuration reconciler, on every change that matters.
func (c *configuration) controller(cch cache.Cache) (controller.Controller, error) {
	skip := true

	ctl, err := controller.NewUnmanaged("configuration", controller.Options{Reconciler: c, SkipNameValidation: &skip})
	if err != nil {
		return nil, fmt.Errorf("cannot make the configuration controller: %w", err)
	}

	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	specs := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	for _, obj := range []client.Object{&v1alpha1.AllowancePolicy{}, &v1alpha1.UpgradeAllowance{}, &v1alpha1.Enforcement{}} {
		if err := ctl.Watch(source.Kind(cch, obj, one, specs)); err != nil {
			return nil, fmt.Errorf("cannot watch our own kinds: %w", err)
		}
	}

	if err := ctl.Watch(source.Kind(cch, client.Object(crds), one, crdPredicate())); err != nil {
		return nil, fmt.Errorf("cannot watch CRDs: %w", err)
	}

	return ctl, nil
}

// crdPredicate passes CRDs that come, change or go. Of metadata alone one
// cannot tell when a CRD is established, so its status updates pass as well.
func crdPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}
