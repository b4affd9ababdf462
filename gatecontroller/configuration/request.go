// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import "time"

// Request names one part of the configuration.
type Request string

// Requests. Kinds makes a new plan and asks for all others.
const (
	// Kinds finds the kinds that are governed, and plans what follows.
	Kinds Request = "kinds"
	// Guards applies the guards inside the API server.
	Guards Request = "guards"
	// Watches watches the kinds that are governed.
	Watches Request = "watches"
	// Webhooks applies the webhook configurations, once the kinds are guarded and
	// watched: nothing is stamped before.
	Webhooks Request = "webhooks"
	// Status reports what is in force, once the webhook is asked.
	Status Request = "status"
	// Adoption finds what waits for us though nothing names its kind.
	Adoption Request = "adoption"
	// Prune releases what is no longer governed, once the webhook is no longer asked
	// about it.
	Prune Request = "prune"
)

const (
	// retrySoon and retryMax are how soon something is reconciled again that is not
	// complete: at first the former, which doubles each time up to the latter. The
	// API server lists a new kind a moment after its CRD says it is served.
	retrySoon = 250 * time.Millisecond
	retryMax  = 10 * time.Second
	// resyncEvery is how often all is reconciled though nothing happened.
	resyncEvery = time.Minute
)

// delay is how long to wait for something that is not complete.
type delay struct{ last time.Duration }

// next is how long to wait now; zero where it is complete. What is incomplete for
// another reason than before is reconciled soon.
func (d *delay) next(complete, same bool) time.Duration {
	switch {
	case complete:
		d.last = 0
	case !same || d.last == 0:
		d.last = retrySoon
	default:
		d.last = min(2*d.last, retryMax)
	}

	return d.last
}
