// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// change is one cycle: hans asks for another size, which is allowed, and for
// another engine, which is allowed on the XR but not further; and somebody who
// may not asks for a backup.
type change struct {
	number    int
	was, size string
}

func (c change) ticket() string { return fmt.Sprint("INFRA-", c.number) }

// steps of the cycle, in order.
func (c change) steps() []step {
	sized := func(u *unstructured.Unstructured) bool {
		return u != nil && resource.String(u.Object, "spec", "size") == c.size
	}
	object := func(s sight) (rec v1alpha1.GateRecord, allowed bool) {
		if s[managed] == nil || resource.String(s[managed].Object, manifest("size")...) != c.size {
			return v1alpha1.GateRecord{}, false
		}

		if r, err := allowance.ParseGate(s[managed]); err == nil && r != nil {
			rec = *r
		}

		return rec, carries(s[managed], allowance.External)
	}

	return []step{
		{"claim-stored", func(s sight) bool { return sized(s[claim]) }},
		{"xr-allowed", func(s sight) bool { return sized(s[xr]) && carries(s[xr], ofKind(managed)) }},
		{"resource-stamped", func(s sight) bool { _, allowed := object(s); return allowed }},
		{"gate-open", func(s sight) bool { rec, _ := object(s); return rec.State == v1alpha1.GateOpen }},
		{"applied", func(s sight) bool {
			return s[external] != nil && resource.String(s[external].Object, "data", "size") == c.size
		}},
		{"synced", func(s sight) bool {
			rec, _ := object(s)
			return rec.State == v1alpha1.GateOpen && resource.ObservedGeneration(s[managed]) >= rec.Generation
		}},
		{"gate-closed", func(s sight) bool { rec, allowed := object(s); return rec.State == v1alpha1.GateClosed && !allowed }},
		{"xr-settled", func(s sight) bool { return sized(s[xr]) && settled(s[xr]) }},
	}
}

// manifest is the path of a field of what a managed resource is to make.
func manifest(field string) []string {
	return []string{"spec", "forProvider", "manifest", "data", field}
}

func ofKind(kind string) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool { return a.Kind == kind }
}

// carries reports whether an object carries an allowance.
func carries(u *unstructured.Unstructured, which func(v1alpha1.Allowance) bool) bool {
	list, err := allowance.Parse(u)

	return err == nil && slices.ContainsFunc(list, which)
}

// settled reports whether the function reports that all that is allowed of an XR
// has arrived.
func settled(u *unstructured.Unstructured) bool {
	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	return strings.HasPrefix(c.Message, fixture.SettledMessage(u.GetGeneration()))
}

// TestAChangeArrivesAsAllowedWhateverDiesOnTheWay kills every process at every
// step of a cycle.
func TestAChangeArrivesAsAllowedWhateverDiesOnTheWay(t *testing.T) {
	install(t)

	d, last := newDatabase(t, "changing"), change{size: "small"}
	if err := d.make(t.Context()); err != nil {
		t.Fatal(err)
	}

	for i, s := range last.steps() {
		for _, process := range processes() {
			if process == "kube-controller-manager" {
				continue // It has no part in this.
			}

			ok := t.Run(process+"/"+s.name, func(t *testing.T) {
				if process != "kausality-manager" {
					world.Long(t)
				}

				last = last.next()

				if err := d.cycle(t, last, process, i); err != nil {
					t.Fatalf("%v\n%s", err, d.dump(t.Context()))
				}
			})
			if !ok {
				return // The next one builds on it.
			}
		}
	}
}

// next is the change after this one.
func (c change) next() change {
	number := c.number + 1

	return change{number: number, was: c.size, size: []string{"small", "medium", "large"}[number%3]}
}

// cycle asks for a change, kills a process at a step, and checks what comes of it.
func (d *database) cycle(t *testing.T, c change, process string, at int) error {
	t.Helper()

	ctx := t.Context()
	s := c.steps()[at]

	_, since, err := readAt(ctx, "/", 0)
	if err != nil {
		return err
	}

	w, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer w.stop()

	// 1. Ask.
	if err := errors.Join(
		d.Patch(ctx, d.object(claim), world.Merge(fmt.Sprintf(`{"spec": {"backup": "unasked-%d"}}`, c.number))),
		d.hans.Patch(ctx, d.object(claim), world.Merge(fmt.Sprintf(
			`{"metadata": {"annotations": {"jira": %q}}, "spec": {"size": %q, "engine": "unasked-%d"}}`, c.ticket(), c.size, c.number))),
	); err != nil {
		return err
	}

	// 2. Kill, the moment that the step is seen.
	if err := w.await(ctx, s); err != nil {
		return err
	}

	took, err := kill(ctx, process)
	if err != nil {
		return err
	}

	// 3. It arrives, and what led there is gone again.
	start := time.Now()

	if err := scenario.Eventually(ctx, c.size, func(ctx context.Context) error { return d.arrived(ctx, c) }); err != nil {
		return err
	}

	t.Logf("%s, and all was quiet after another %s", took, time.Since(start).Round(time.Millisecond))

	// 4. Nothing else ever did, for a moment even.
	return errors.Join(d.history(ctx, c, since), running.Err())
}

// arrived checks that the change is where it belongs, and that nothing is under
// way any more.
func (d *database) arrived(ctx context.Context, c change) error {
	u, err := d.get(ctx, external)
	if err != nil {
		return err
	}

	if got := resource.String(u.Object, "data", "size"); got != c.size {
		return fmt.Errorf("the external object's size is %q, want %q: %w", got, c.size, world.ErrOther)
	}

	if u, err = d.get(ctx, xr); err != nil {
		return err
	}

	if !settled(u) {
		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

		return fmt.Errorf("XR at generation %d: %s: %w", u.GetGeneration(), got.Message, world.ErrOther)
	}

	for _, kind := range []string{managed, xr, claim} {
		if err := d.traced(ctx, c, kind); err != nil {
			return err
		}
	}

	return d.closed(ctx)
}

// traced checks that a part says who asked for the size, and with which ticket.
func (d *database) traced(ctx context.Context, c change, kind string) error {
	field := "spec.size"
	if kind == managed {
		field = strings.Join(manifest("size"), ".")
	}

	u, err := d.get(ctx, kind)
	if err != nil {
		return err
	}

	list, err := allowance.ParseTrace(u)
	if err != nil {
		return err
	}

	for _, e := range list {
		if e.Field != field {
			continue
		}

		if e.Initiator == hansUser && e.Trace[0].Attestations["metadata.annotations[jira]"] == c.ticket() {
			return nil
		}

		return fmt.Errorf("%s: %s is traced to %+v, not to %s: %w", kind, field, e, c.ticket(), world.ErrOther)
	}

	return fmt.Errorf("%s: %s has no trace: %w", kind, field, world.ErrOther)
}

// history checks what the parts were like during a cycle.
func (d *database) history(ctx context.Context, c change, since int64) error {
	var errs []error

	for kind, p := range d.parts() {
		list, err := versions(ctx, p.key(), since)
		if err != nil {
			return err
		}

		var sizes []string

		for _, u := range list {
			size := resource.String(u.Object, "spec", "size")

			switch kind {
			case managed:
				size = resource.String(u.Object, manifest("size")...)
				errs = append(errs, unasked(resource.Map(u.Object, manifest("")[:4]...), engine), narrow(u, byHans))
			case external:
				size = resource.String(u.Object, "data", "size")
				errs = append(errs, unasked(resource.Map(u.Object, "data"), engine))
			case xr:
				errs = append(errs, unasked(resource.Map(u.Object, "spec"), ""))
			}

			sizes = append(sizes, size)
		}

		if got, want := slices.Compact(sizes), []string{c.was, c.size}; !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%s had the sizes %v, want %v: %w", kind, got, want, world.ErrOther))
		}

		if n := openings(list); kind == managed && n != 1 {
			errs = append(errs, fmt.Errorf("the gate opened %d times: %w", n, world.ErrOther))
		}
	}

	return errors.Join(errs...)
}

// unasked checks that there is no backup, nor another engine than one.
func unasked(fields map[string]any, engine string) error {
	if backup, ok := fields["backup"]; ok {
		return fmt.Errorf("there was a backup %v: %w", backup, world.ErrOther)
	}

	if got := fields["engine"]; engine != "" && got != engine {
		return fmt.Errorf("there was an engine %v: %w", got, world.ErrOther)
	}

	return nil
}

func byHans(a v1alpha1.Allowance) bool { return a.Initiator == hansUser }

// narrow checks that a gate is no wider than its record says, and that it is open
// only for updates that an allowance was given for.
func narrow(u *unstructured.Unstructured, given func(v1alpha1.Allowance) bool) error {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil {
		return fmt.Errorf("the gate has no record: %w", errors.Join(err, world.ErrOther))
	}

	open := management.Acting(resource.Strings(u.Object, "spec", "managementPolicies"))
	if len(open) == 0 && rec.State == v1alpha1.GateClosed {
		return nil
	}

	if slices.Equal(open, []string{management.ActionUpdate}) && slices.Equal(rec.Actions, open) &&
		len(rec.Allowances) > 0 && !slices.ContainsFunc(rec.Allowances, not(given)) {
		return nil
	}

	return fmt.Errorf("at generation %d the gate was open for %v, with the record %+v: %w", u.GetGeneration(), open, rec, world.ErrOther)
}

func not(is func(v1alpha1.Allowance) bool) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool { return !is(a) }
}

// openings counts how often a gate opened.
func openings(list []*unstructured.Unstructured) (n int) {
	was := v1alpha1.GateClosed

	for _, u := range list {
		rec, err := allowance.ParseGate(u)
		if err != nil || rec == nil {
			continue
		}

		if was != v1alpha1.GateOpen && rec.State == v1alpha1.GateOpen {
			n++
		}

		was = rec.State
	}

	return n
}
