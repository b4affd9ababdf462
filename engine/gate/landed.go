// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// landed says what is still missing until the allowed change is in the
// external system, empty when nothing is, and when to look again if time alone
// decides.
func (p *planner) landed() (missing string, again time.Duration) {
	if slices.Contains(p.record.Actions, ActionDelete) {
		return "waiting for the resource to be gone", 0
	}

	// (a) The provider has reconciled with the gate open. The allowance's own
	// generation does not count: with the gate closed it is reported as synced
	// too, and nothing was applied.
	since, missing := p.synced(p.target())
	if missing != "" {
		return missing, 0
	}

	// (b) Nothing runs in the background or has failed there.
	if missing := p.asyncOperation(); missing != "" {
		return missing, 0
	}

	if p.record.Initial {
		if c, ok := resource.ConditionOf(p.u, resource.ConditionReady); !ok || !c.True() {
			return "waiting for the resource to be ready for the first time", 0
		}

		return "", 0
	}

	// (c) The external system shows the new values.
	shown, differs := p.compareExternal()

	switch {
	case differs != "":
		return fmt.Sprintf("waiting for the external system to show the new value of %s", differs), 0
	case shown:
		return "", 0
	}

	// Where it shows none of them, (a) and (b) must hold for a while.
	if left := p.opts.Settle - p.now.Sub(since); left > 0 {
		return "waiting for the change to settle", left
	}

	return "", 0
}

// target is the generation the provider must have synced: the one the opening
// made, or that of a change allowed since.
func (p *planner) target() int64 {
	g := p.record.Generation
	for _, a := range p.pending {
		g = max(g, a.Generation)
	}

	return g
}

// synced says since when the provider reports a generation as synced at the
// earliest, or what is missing.
func (p *planner) synced(generation int64) (since time.Time, missing string) {
	c, ok := resource.ConditionOf(p.u, resource.ConditionSynced)

	switch {
	case !ok:
		return time.Time{}, "waiting for the provider to report Synced"
	case !c.True():
		return time.Time{}, fmt.Sprintf("waiting for the provider, which reports Synced=%s: %s", c.Status, c.Message)
	case c.ObservedGeneration != 0 && c.ObservedGeneration < generation:
		return time.Time{}, fmt.Sprintf("waiting for the provider to sync generation %d (it synced %d)", generation, c.ObservedGeneration)
	}

	if p.record != nil {
		since = p.record.Since.Time
	}

	if t, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil && t.After(since) {
		since = t
	}

	return since, ""
}

// asyncOperation says what an asynchronous provider is still at.
func (p *planner) asyncOperation() string {
	if c, ok := resource.ConditionOf(p.u, resource.ConditionAsyncOperation); ok && c.Reason == "Ongoing" {
		return "waiting for the provider's asynchronous operation"
	}

	if c, ok := resource.ConditionOf(p.u, resource.ConditionLastAsyncOperation); ok && c.Status == "False" {
		return fmt.Sprintf("waiting for the provider, whose last asynchronous operation failed: %s", c.Message)
	}

	return ""
}

// compareExternal compares the allowed fields with status.atProvider: whether
// it shows any of them, and the first that has another value.
func (p *planner) compareExternal() (shown bool, differs string) {
	paved := fieldpath.Pave(p.u.Object)

	for _, field := range p.allowedFields() {
		segments, err := fieldpath.Parse(field)
		if err != nil || len(segments) < 3 || segments[0].Field != "spec" || segments[1].Field != "forProvider" {
			continue
		}

		at := slices.Concat(fieldpath.Segments{fieldpath.Field("status"), fieldpath.Field("atProvider")}, segments[2:])

		actual, err := paved.GetValue(at.String())
		if err != nil {
			continue
		}

		shown = true

		want, err := paved.GetValue(field)
		if err != nil || !change.Equal(want, actual) {
			return shown, field
		}
	}

	return shown, ""
}

// allowedFields are the fields whose change the pending allowances are about:
// those the resource's trace records for their generations.
func (p *planner) allowedFields() []string {
	fields := make([]string, 0, len(p.pending))
	generations := make([]int64, 0, len(p.pending))

	for _, a := range p.pending {
		generations = append(generations, a.Generation)
		if n := len(a.Trace); n > 0 {
			fields = append(fields, a.Trace[n-1].Field)
		}
	}

	entries, err := allowance.ParseTrace(p.u)
	if err != nil {
		return fields
	}

	for _, e := range entries {
		if slices.Contains(generations, e.Generation) && !slices.Contains(fields, e.Field) {
			fields = append(fields, e.Field)
		}
	}

	return fields
}
