// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// reconcileKinds reads what is asked for and which kinds there are, and plans what
// follows.
func (c *Reconciler) reconcileKinds(ctx context.Context) (reconcile.Result, error) {
	// 1. Read.
	o, behind, err := c.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	if c.Rights.Refresh(ctx, o.want, o.served, kind.Union(o.watched, c.Composed.Parents(o.served))) {
		c.rightsCame = true
	}

	// 2. Plan.
	before := c.plan
	c.plan = planFor(o, c.Applier.Hooks)

	// 3. Ask for all parts of it.
	c.request(ctx, Guards, Watches, Webhooks, Status, Adoption, Prune)

	same := before != nil && slices.Equal(before.missing, c.plan.missing)
	complete := len(c.plan.missing) == 0 && c.composedKnown && !behind && !c.Rights.Missing()

	if wait := c.delays[Kinds].next(complete, same); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	return reconcile.Result{RequeueAfter: resyncEvery}, nil
}

// observe reads what is asked for, and finds the kinds that it is about. It returns
// true where discovery is behind what is served.
func (c *Reconciler) observe(ctx context.Context) (o observed, behind bool, err error) {
	o.gates, o.stamped = c.Gated, c.stamped

	if o.want, err = c.read(ctx); err != nil {
		return o, false, err
	}

	bindings := &v1alpha1.AllowanceBindingList{}
	if err := c.Reader.List(ctx, bindings, client.UnsafeDisableDeepCopy); err != nil {
		return o, false, fmt.Errorf("cannot list %T: %w", bindings, err)
	}

	o.bindings = len(bindings.Items) > 0

	if o.served, err = c.Resolver.Served(ctx); err != nil {
		return o, false, err
	}

	behind = c.Unlisted.Set(ctx, o.served)
	o.listed = c.Unlisted.Without(o.served)
	o.named, _ = kind.Named(o.served, o.want.Names())
	o.enforced = admission.Covered(o.want.Enforcements, o.served)

	if err := c.describe(ctx, o.named, o.enforced); err != nil {
		return o, false, err
	}

	o.gated, o.watched, err = c.findGated(ctx, o.served, parentKinds(o.want, o.named, o.enforced))
	if err != nil {
		return o, false, err
	}

	o.usages, err = c.Resolver.Usages(ctx, o.served)

	return o, behind, err
}

func (c *Reconciler) read(ctx context.Context) (admission.Config, error) {
	policies := &v1alpha1.AllowancePolicyList{}
	allowances := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, allowances, enforcements} {
		if err := c.Reader.List(ctx, list); err != nil {
			return admission.Config{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	return admission.Config{Policies: policies.Items, Windows: allowances.Items, Enforcements: enforcements.Items}, nil
}

// describe finds out which kinds are managed resources.
func (c *Reconciler) describe(ctx context.Context, kinds []kind.Served, enforced []admission.Enforced) error {
	if err := c.Resolver.Describe(ctx, kinds); err != nil {
		return err
	}

	for _, e := range enforced {
		if err := c.Resolver.Describe(ctx, e.Kinds); err != nil {
			return err
		}
	}

	return nil
}
