// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import "time"

// Wait is what an open gate waits for.
type Wait string

// Waits.
const (
	// WaitSynced waits for the provider to report Synced at the gate's
	// generation.
	WaitSynced Wait = "Synced"
	// WaitOperation waits for an asynchronous operation of the provider.
	WaitOperation Wait = "AsyncOperation"
	// WaitReady waits for a new resource to be ready.
	WaitReady Wait = "Ready"
	// WaitExternal waits for the external system to show the new values.
	WaitExternal Wait = "External"
	// WaitCondition waits for closeWhen of a policy.
	WaitCondition Wait = "CloseWhen"
	// WaitSettle waits for time to pass.
	WaitSettle Wait = "Settle"
	// WaitGone waits for the resource to be gone.
	WaitGone Wait = "Gone"
)

// Lack is what is missing until a change has landed; of the zero value nothing
// is.
type Lack struct {
	Wait Wait
	// Text says it for a person.
	Text string
	// Again is when to check again, where time alone decides.
	Again time.Duration
	// Broken is why it cannot be known, where that is so.
	Broken error
}

// Nothing reports whether the change has landed.
func (l Lack) Nothing() bool { return l.Wait == "" }
