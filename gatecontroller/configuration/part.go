// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
)

// applyGuards applies the guards: those of our own kinds, of parameters and of held changes,
// and those of managed resources where gates are switched on.
func (c *Reconciler) applyGuards(ctx context.Context, p *plan) (reconcile.Result, error) {
	return reconcile.Result{}, c.Applier.ApplyGuards(ctx, p.guards)
}

// watch watches what is governed, as far as it may be read.
func (c *Reconciler) watch(ctx context.Context, p *plan) (reconcile.Result, error) {
	if err := c.Watches.Run(ctx, c.Rights.Readable(ctx, p.observed.watched)); err != nil {
		return reconcile.Result{}, err
	}

	// What failed for want of a right would be tried again later and later.
	if c.rightsCame {
		if err := c.Watches.EnqueueAll(ctx); err != nil {
			return reconcile.Result{}, err
		}

		c.rightsCame = false
	}

	return reconcile.Result{}, c.enqueueOpenGates(p.observed.want.Policies)
}

// enqueueOpenGates has open gates reconciled again when a policy says something else of
// gates.
func (c *Reconciler) enqueueOpenGates(policies []v1alpha1.AllowancePolicy) error {
	now, err := fingerprint(policies)
	if err != nil {
		return err
	}

	if now != c.settings {
		c.Watches.Enqueue(c.OpenGates())
	}

	c.settings = now

	return nil
}

// applyWebhooks applies the webhook configurations.
func (c *Reconciler) applyWebhooks(ctx context.Context, p *plan) (reconcile.Result, error) {
	if err := c.Applier.ApplyWebhooks(ctx, p.governed, p.observed.enforced, p.kept()); err != nil {
		return reconcile.Result{}, err
	}

	c.stamped = p.governed

	return reconcile.Result{}, nil
}

// report has the status of policies, windows and Enforcements show that they are in
// force, each by a controller of its kind. Where a schema is missing to check them
// against, it is tried again soon.
func (c *Reconciler) report(ctx context.Context, p *plan) (reconcile.Result, error) {
	named, unknown := kind.Named(p.observed.listed, kind.Names(p.observed.want.Policies, p.observed.want.Windows)) // Also in Shadow mode.

	complete := c.Statuses.Set(ctx, status.Applied{Want: p.observed.want, Listed: p.observed.listed, Named: kind.Union(p.observed.named,
		named), Unknown: unknown})

	c.Windows.SetReadiness(ctx, p.observed.want.Windows, p.unknown, windows.Checks{
		Lacks: func(u *v1alpha1.UpgradeAllowance) string {
			return c.Rights.Message(right.OfWindow(u, kind.ForRights(p.observed.listed)), "its changes may be held or refused")
		},
		TypeChecking: c.Statuses.CheckWindow,
	})

	return reconcile.Result{RequeueAfter: c.delays[Status].next(complete, true)}, nil
}

// adopt finds what waits for us though nothing names its kind.
func (c *Reconciler) adopt(ctx context.Context, p *plan) (reconcile.Result, error) {
	complete, err := c.Adoption.Adopt(ctx, p.observed.served)
	if err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: c.delays[Adoption].next(complete, true)}, nil
}

// prune releases what is no longer governed.
func (c *Reconciler) prune(ctx context.Context, p *plan) (reconcile.Result, error) {
	c.Ungated.Keep(p.observed.watched)

	return reconcile.Result{}, c.Watches.Prune(ctx, p.observed.watched, p.observed.served)
}
