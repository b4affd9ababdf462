// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// promptLater is how long what nobody waits for may take: many XRs may go at
// once.
const promptLater = 2 * time.Second

type prompts = event.TypedGenericEvent[time.Duration]

// Prompt asks the configuration to be reconciled again. It never blocks.
type Prompt struct {
	Now, then chan prompts
}

// NewPrompt makes a Prompt.
func NewPrompt() *Prompt { return &Prompt{Now: make(chan prompts, 1), then: make(chan prompts, 1)} }

// Soon asks for the configuration to be reconciled now.
func (p *Prompt) Soon() { ask(p.Now, 0) }

// Later asks for the configuration to be reconciled in a moment.
func (p *Prompt) Later() { ask(p.then, promptLater) }

func ask(c chan<- prompts, after time.Duration) {
	select {
	case c <- prompts{Object: after}:
	default: // Asked already.
	}
}

// Prompted are the sources of one request, for each time that it is asked for.
func Prompted[request comparable](p *Prompt, req request) []source.TypedSource[request] {
	add := handler.TypedFuncs[time.Duration, request]{
		GenericFunc: func(_ context.Context, e prompts, queue workqueue.TypedRateLimitingInterface[request]) {
			queue.AddAfter(req, e.Object)
		},
	}

	return []source.TypedSource[request]{
		source.TypedChannel[time.Duration, request](p.Now, add), source.TypedChannel[time.Duration, request](p.then, add),
	}
}
