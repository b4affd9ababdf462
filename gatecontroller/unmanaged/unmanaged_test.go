// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package unmanaged

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func TestTwoControllersOfOneNameReconcileWhatTheirSourcesAskFor(t *testing.T) {
	got := make(chan string, 2)

	for _, name := range []string{"a", "b"} {
		asks := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			req := reconcile.Request{}
			req.Name = name
			q.Add(req)

			return nil
		})

		ctl, err := New("same", reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			got <- req.Name

			return reconcile.Result{}, nil
		}), logr.Discard(), asks)
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- ctl.Start(ctx) }()

		if asked := <-got; asked != name {
			t.Errorf("reconciled %q, want %q", asked, name)
		}

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeMadeIsNamed(t *testing.T) {
	errNil := "must specify Reconciler"

	if _, err := New("status", nil, logr.Discard()); err == nil || !strings.Contains(err.Error(), "the status controller: "+errNil) {
		t.Errorf("without a reconciler: %v", err)
	}

	// A source without a handler fails once the controller starts it.
	broken := source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return errBroken })

	ctl, err := New("status", reconcile.Func(nil), logr.Discard(), broken)
	if err != nil {
		t.Fatal(err)
	}

	if err := ctl.Start(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("start: %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("the source is broken")
