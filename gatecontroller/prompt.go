// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// promptLater is how long what nobody waits for may take: many XRs may go at
// once.
const promptLater = 2 * time.Second

// prompt asks the configuration to be looked at again. It never blocks.
type prompt struct {
	now, then chan struct{}
}

func newPrompt() *prompt {
	return &prompt{now: make(chan struct{}, 1), then: make(chan struct{}, 1)}
}

func (p *prompt) soon() { ask(p.now) }

func (p *prompt) later() { ask(p.then) }

func ask(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // Asked already.
	}
}

// run is a source of requests.
func (p *prompt) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.now:
				queue.Add(reconcile.Request{})
			case <-p.then:
				queue.AddAfter(reconcile.Request{}, promptLater)
			}
		}
	}()

	return nil
}
