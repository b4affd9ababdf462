// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// MissingGone is what a gate that is open for a deletion waits for.
const MissingGone = "waiting for the resource to be gone"

// Landed says what is still missing until the allowed change is in the
// external system.
func (m Resource) Landed(limits Limits, now time.Time) Lack {
	if slices.Equal(management.Acting(m.Record.Actions), []string{management.ActionDelete}) {
		return Lack{Wait: WaitGone, Text: MissingGone}
	}

	// (a) The provider has reconciled with the gate open. The allowance's own
	// generation does not count: with the gate closed it is reported as synced
	// too, and nothing was applied.
	generation := m.Record.Generation
	if m.Record.Creating { // What came since is built as well.
		generation = max(generation, resource.Generation(m.Object))
	}

	synced, missing := m.synced(generation)
	if missing != "" {
		return Lack{Wait: WaitSynced, Text: missing}
	}

	// (b) Nothing runs in the background or has failed there.
	if missing := m.asyncOperation(); missing != "" {
		return Lack{Wait: WaitOperation, Text: missing}
	}

	// (c) The external system shows the new values, or the policy's own
	// condition holds; a new one is ready.
	t := m.Terms(limits)

	shown, missed := m.result(t)
	if !missed.Nothing() {
		return missed
	}

	if shown && m.saidSince(synced) && !m.overtaken() {
		return Lack{}
	}

	// Where it shows none of them, or nothing can be known from what it shows, (a)
	// and (b) must hold for a while.
	if left := t.settle - now.Sub(m.steadySince()); left > 0 {
		return Lack{Wait: WaitSettle, Text: "waiting for the change to settle", Again: left}
	}

	return Lack{}
}

// synced returns the Synced condition, and what is missing until it says that
// the provider has synced a generation.
//
// A condition without observedGeneration is taken for every generation, as
// Kubernetes does: runtimes before crossplane-runtime 1.20 set none, nor does
// upjet's callback at the end of an asynchronous operation, and a gate that
// waited for it would stay open for ever. Such a condition may be from before
// the opening: see saidSince.
func (m Resource) synced(generation int64) (c resource.Condition, missing string) {
	c, ok := resource.ConditionOf(m.Object, resource.ConditionSynced)

	switch {
	case !ok:
		return c, "waiting for the provider to report Synced"
	case !c.True():
		return c, fmt.Sprintf("waiting for the provider, which reports Synced=%s: %s", c.Status, cmp.Or(c.Message, c.Reason))
	case c.ObservedGeneration != 0 && c.ObservedGeneration < generation:
		return c, fmt.Sprintf("waiting for the provider to sync generation %d (it synced %d)", generation, c.ObservedGeneration)
	default:
		return c, ""
	}
}

// SaysGeneration reports whether Synced, whatever its status, says which generation it is of; true where there is none yet.
func (m Resource) SaysGeneration() bool {
	c, ok := resource.ConditionOf(m.Object, resource.ConditionSynced)

	return !ok || c.ObservedGeneration != 0
}

// saidSince reports whether a Synced condition is surely from an observation of the
// external system after the opening and after any operation in the background:
// it has a generation, and is no older than the operation's end. One that is
// not proves nothing before it has settled, whatever the status shows: upjet's
// callback sets Synced when an operation ends, and the status is from before.
func (m Resource) saidSince(synced resource.Condition) bool {
	said, _ := time.Parse(time.RFC3339, synced.LastTransitionTime)

	return synced.ObservedGeneration != 0 &&
		!m.latest(time.Time{}, resource.ConditionAsyncOperation, resource.ConditionLastAsyncOperation).After(said)
}

// overtaken reports whether a provider may still be at a change in the background
// that another change has overtaken. It reports the later one as synced all the
// same, and if that takes the first one back, the external system shows the
// wanted values until the first one is made.
func (m Resource) overtaken() bool {
	_, works := resource.ConditionOf(m.Object, resource.ConditionLastAsyncOperation)
	_, announces := resource.ConditionOf(m.Object, resource.ConditionAsyncOperation)

	if !works && !announces {
		return false
	}

	generations := map[int64]bool{}

	for _, a := range UnderWay(m.Record) {
		generations[a.Generation] = true
	}

	return len(generations) > 1
}

// steadySince is since when the provider has said what it says now: the last
// transition of a condition that could have spoken against it, or the gate's
// own move. A transition that lies in the future, for clocks differ, is waited
// for: settling late keeps a gate open for longer, settling early loses a
// change. One without a readable time counts as before the move.
func (m Resource) steadySince() time.Time {
	return m.latest(m.Record.Since.Time,
		resource.ConditionSynced, resource.ConditionAsyncOperation, resource.ConditionLastAsyncOperation)
}

// latest returns the latest transition of some conditions, if that is after a
// time.
func (m Resource) latest(since time.Time, types ...string) time.Time {
	for _, typ := range types {
		c, _ := resource.ConditionOf(m.Object, typ)

		if t, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil && t.After(since) {
			since = t
		}
	}

	return since
}

// asyncOperation says what an asynchronous provider is still at.
func (m Resource) asyncOperation() string {
	if c, ok := resource.ConditionOf(m.Object, resource.ConditionAsyncOperation); ok && c.Reason == "Ongoing" {
		return "waiting for the provider's asynchronous operation"
	}

	if c, ok := resource.ConditionOf(m.Object, resource.ConditionLastAsyncOperation); ok && c.Status == "False" {
		return fmt.Sprintf("waiting for the provider, whose last asynchronous operation failed: %s", c.Message)
	}

	return ""
}
