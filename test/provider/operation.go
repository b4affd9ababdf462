// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// An operation is the last change that was made in the background for one
// managed resource. Like upjet's it is lost when the provider ends.
type operation struct {
	mu      sync.Mutex
	verb    external.Verb
	running bool
	err     error
}

// start reports whether a change may start: only one at a time does.
func (o *operation) start(verb external.Verb) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.running {
		return false
	}

	o.verb, o.running = verb, true

	return true
}

// end remembers how the change ended.
func (o *operation) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.running, o.err = false, err
}

// under reports whether a change is under way, and which, and how the last ended.
func (o *operation) under() (verb external.Verb, running bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.verb, o.running, o.err
}

// forget forgets which change was the last, and how it ended, unless that is to
// be kept.
func (o *operation) forget(keepError bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.verb = ""

	if !keepError {
		o.err = nil
	}
}

// operations are those of all managed resources.
type operations struct {
	mu  sync.Mutex
	all map[types.UID]*operation
}

func (o *operations) of(uid types.UID) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.all[uid] == nil {
		o.all[uid] = &operation{}
	}

	return o.all[uid]
}
