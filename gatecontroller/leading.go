// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/configuration"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
)

// leading is what only one of several replicas does.
type leading struct {
	watches     *watch.Watches
	controllers []runner
}

var (
	_ manager.Runnable               = (*leading)(nil)
	_ manager.LeaderElectionRunnable = (*leading)(nil)
)

// runner is a controller, whatever its requests are.
type runner interface {
	Start(ctx context.Context) error
}

// maker makes a controller.
type maker interface {
	Controller(c cache.Cache, log logr.Logger) (controller.Controller, error)
}

// newLeading makes the controllers.
func newLeading(mgr ctrl.Manager, c *configuration.Reconciler, held *pending.Reconciler, makers []maker) (*leading, error) {
	one, err := c.Controller(mgr.GetCache(), mgr.GetLogger())
	if err != nil {
		return nil, err
	}

	two, err := held.Controller(mgr.GetCache(), mgr.GetLogger())
	if err != nil {
		return nil, err
	}

	out := &leading{watches: c.Watches, controllers: []runner{one, two}}

	for _, m := range makers {
		ctl, err := m.Controller(mgr.GetCache(), mgr.GetLogger())
		if err != nil {
			return nil, err
		}

		out.controllers = append(out.controllers, ctl)
	}

	return out, nil
}

// NeedLeaderElection is true.
func (*leading) NeedLeaderElection() bool { return true }

// Start runs all controllers until the context ends, and returns when none of
// them writes any more: the lease is given up after that.
func (l *leading) Start(ctx context.Context) error {
	defer l.watches.Stop()
	defer context.AfterFunc(ctx, l.watches.Cancel)()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var wg sync.WaitGroup

	errs := make([]error, len(l.controllers))

	for i, c := range l.controllers {
		wg.Go(func() {
			defer cancel() // None without the others.

			errs[i] = c.Start(ctx)
		})
	}

	wg.Wait()

	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot run the controllers: %w", err)
	}

	return nil
}
