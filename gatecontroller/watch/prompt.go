// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// promptLater is how long what nobody waits for may take: many XRs may go at
// once.
const promptLater = 2 * time.Second

// Prompt asks the configuration to be looked at again. It never blocks.
type Prompt struct {
	Now, then chan struct{}
}

// NewPrompt makes a Prompt.
func NewPrompt() *Prompt {
	return &Prompt{Now: make(chan struct{}, 1), then: make(chan struct{}, 1)}
}

// Soon asks for the configuration to be reconciled now.
func (p *Prompt) Soon() { ask(p.Now) }

// Later asks for the configuration to be reconciled in a moment.
func (p *Prompt) Later() { ask(p.then) }

func ask(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // Asked already.
	}
}

// Source is a source of requests.
func (p *Prompt) Source(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.Now:
				queue.Add(reconcile.Request{})
			case <-p.then:
				queue.AddAfter(reconcile.Request{}, promptLater)
			}
		}
	}()

	return nil
}
