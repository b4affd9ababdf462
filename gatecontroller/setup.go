// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Webhook says how the API server reaches the webhook.
type Webhook struct {
	// URL of the webhook's server, without a path; empty to use Service.
	URL string
	// Service in our namespace, on port 443.
	Service string
	// MutatePath, EnforcePath and ValidatePath are the server's paths.
	MutatePath, EnforcePath, ValidatePath string
	// Trust is what the server is verified with.
	Trust Trust
	// InjectCAFrom is a Certificate of cert-manager, as NAMESPACE/NAME, whose CA
	// is trusted instead; empty for none.
	InjectCAFrom string
}

// Trust is what a server is verified with.
type Trust interface {
	// Bundle returns CA certificates, as PEM; none to trust those that the API
	// server trusts anyway.
	Bundle() []byte
	// Changed receives something when the bundle has changed.
	Changed() <-chan struct{}
}

// Options of the controllers.
type Options struct {
	// Namespace we run in.
	Namespace string
	// Settings name who is who.
	Settings decision.Settings
	// Gates switches the gates and their guards on.
	Gates bool
	// Gate holds what gates are moved by.
	Gate gate.Options
	// Webhook to configure; nil for none.
	Webhook *Webhook
	// Now is the clock.
	Now func() time.Time
}

// Setup adds the controllers to a manager.
func Setup(mgr ctrl.Manager, opts Options) error {
	disco, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("cannot make a discovery client: %w", err)
	}

	g := &gates{client: mgr.GetClient(), events: mgr.GetEventRecorder("kausality"), opts: opts.Gate, now: opts.Now}
	p := &parents{client: mgr.GetClient()}

	until, err := newExceptions(metrics.Registry, mgr.GetEventRecorder("kausality"))
	if err != nil {
		return err
	}

	w := &watches{
		cache: mgr.GetCache(), running: map[schema.GroupVersionKind]context.CancelFunc{}, owners: map[schema.GroupVersionKind]bool{},
	}
	o := &owners{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: g.events, watches: w,
		deletions: &deletions{reader: mgr.GetCache(), policies: policy.NewCache(), opts: opts},
	}

	e, err := newEnds(metrics.Registry, o, opts)
	if err != nil {
		return err
	}

	o.ends = e
	w.release = o.releaseAll
	w.object = func(gvk schema.GroupVersionKind) reconcile.Reconciler {
		return &objectReconciler{gvk: gvk, reader: mgr.GetCache(), gates: g, parents: p, owners: o, ends: e, gated: opts.Gates}
	}

	c := &configuration{
		client: mgr.GetClient(), reader: mgr.GetCache(), watches: w, opts: opts,
		resolver: &resolver{discovery: disco, crds: mgr.GetCache(), live: mgr.GetAPIReader(), described: map[string]bool{}},
		schemas:  &schemas{discovery: disco}, exceptions: until,
	}

	ctl, err := c.controller(mgr.GetCache(), mgr.GetLogger())
	if err != nil {
		return err
	}

	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer w.stop()

		return ctl.Start(ctx)
	}))
	if err != nil {
		return fmt.Errorf("cannot add the controllers: %w", err)
	}

	return nil
}
