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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// Webhook says how the API server reaches the webhook.
type Webhook struct {
	// URL of the webhook's server, without a path; empty to use Service.
	URL string
	// Service in our namespace, on port 443.
	Service string
	// MutatePath and ValidatePath are the server's paths.
	MutatePath, ValidatePath string
	// Bundle returns the CA certificates to verify the server with, as PEM.
	Bundle func() []byte
}

// Options of the controllers.
type Options struct {
	// Namespace we run in.
	Namespace string
	// ManagerUser is the user name we run under.
	ManagerUser string
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

	w := &watches{
		cache: mgr.GetCache(), running: map[schema.GroupVersionKind]context.CancelFunc{},
		object: func(gvk schema.GroupVersionKind) reconcile.Reconciler {
			return &objectReconciler{gvk: gvk, reader: mgr.GetCache(), gates: g, parents: p, gated: opts.Gates}
		},
	}

	c := &configuration{
		client: mgr.GetClient(), reader: mgr.GetCache(), watches: w, opts: opts,
		resolver: &resolver{discovery: disco, live: mgr.GetAPIReader()},
		schemas:  &schemas{discovery: disco},
	}

	ctl, err := c.controller(mgr.GetCache())
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
