// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// deletionSteps are those of a Claim's deletion, in order.
func deletionSteps() []step {
	deletes := func(a v1alpha1.Allowance) bool {
		return allowance.External(a) && slices.Contains(a.Mutations, management.ActionDelete)
	}

	return []step{
		{"grant-recorded", func(s sight) bool {
			return s[claim] == nil || carries(s[claim], func(a v1alpha1.Allowance) bool { return a.Mutation == v1alpha1.MutationDelete })
		}},
		{"delete-stamped", func(s sight) bool { return s[managed] == nil || carries(s[managed], deletes) }},
		{"gate-open", func(s sight) bool {
			return s[managed] == nil || slices.Contains(resource.Strings(s[managed].Object, "spec", "managementPolicies"), management.ActionDelete)
		}},
		{"external-gone", func(s sight) bool { return s[external] == nil }},
	}
}

// TestADeletionLeavesNothingWhateverDiesOnTheWay kills every process at every
// step of a Claim's deletion.
func TestADeletionLeavesNothingWhateverDiesOnTheWay(t *testing.T) {
	world.Long(t)

	impatient(t)
	install(t)

	text, err := os.ReadFile("../e2e/testdata/claim-deletion.yaml")
	if err != nil {
		t.Fatal(err)
	}

	if err := apply(t, string(text)); err != nil {
		t.Fatal(err)
	}

	for _, s := range deletionSteps() {
		made := makeDatabases(t, s.name+"-")

		for _, process := range processes() {
			t.Run(process+"/"+s.name, func(t *testing.T) {
				if err := made[process].end(t, process, s); err != nil {
					t.Fatalf("%v\n%s", err, made[process].dump(t.Context()))
				}
			})
		}
	}
}

// makeDatabases makes one for each process, all at once.
func makeDatabases(t *testing.T, prefix string) map[string]*database {
	t.Helper()

	var (
		wg   sync.WaitGroup
		made = map[string]*database{}
		errs = make([]error, len(processes()))
	)

	for i, process := range processes() {
		d := newDatabase(t, prefix+process)
		made[process] = d

		wg.Go(func() { errs[i] = d.make(t.Context()) })
	}

	wg.Wait()

	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}

	return made
}

// end deletes the Claim, kills a process at a step, and checks what comes of it.
func (d *database) end(t *testing.T, process string, s step) error {
	t.Helper()

	ctx := t.Context()

	_, since, err := readAt(ctx, "/", 0)
	if err != nil {
		return err
	}

	w, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer w.stop()

	if err := w.await(ctx, step{"all of it", func(s sight) bool { return len(s) == len(d.parts()) }}); err != nil {
		return err
	}

	// 1. Ask, as a person does: again where it did not work.
	deleted := make(chan error, 1)

	go func() {
		deleted <- scenario.Eventually(ctx, "the deletion", func(ctx context.Context) error {
			return client.IgnoreNotFound(d.hans.Delete(ctx, d.object(claim)))
		})
	}()

	// 2. Kill, the moment that the step is seen.
	if err := w.await(ctx, s); err != nil {
		return err
	}

	took, err := kill(ctx, process)
	if err != nil {
		return err
	}

	// 3. Nothing is left.
	start := time.Now()

	left := &remains{}

	if err := errors.Join(<-deleted, scenario.Eventually(ctx, "the end", func(ctx context.Context) error {
		return d.gone(ctx, left)
	})); err != nil {
		return err
	}

	t.Logf("%s, and all was gone after another %s%s", took, time.Since(start).Round(time.Millisecond), left)

	// 4. And nobody but hans had the gate opened, for that alone.
	return errors.Join(d.ended(ctx, since), running.Err())
}

// remains says for whom the end of a database had to wait.
type remains struct{ last string }

func (r *remains) String() string {
	if r.last == "" {
		return ""
	}

	return ", the last of it " + r.last
}

// gone checks that nothing of the database is left.
func (d *database) gone(ctx context.Context, left *remains) error {
	for kind, p := range d.parts() {
		v, _, err := readAt(ctx, p.key(), 0)
		if err != nil {
			return err
		}

		if v != nil {
			left.last = kind

			return fmt.Errorf("%s %q is still there: %w", kind, p.name, world.ErrOther)
		}
	}

	return nil
}

// ended checks that the gate was closed until hans's deletion opened it for
// Delete, that it was open when the managed resource was deleted, and that it
// stayed so.
func (d *database) ended(ctx context.Context, since int64) error {
	list, err := versions(ctx, d.parts()[managed].key(), since)
	if err != nil {
		return err
	}

	var errs []error

	for _, u := range list {
		open := management.Acting(resource.Strings(u.Object, "spec", "managementPolicies"))

		rec, err := allowance.ParseGate(u)
		if err != nil || rec == nil {
			return fmt.Errorf("the gate has no record: %w", errors.Join(err, world.ErrOther))
		}

		switch {
		case len(open) == 0 && rec.State == v1alpha1.GateClosed && !resource.Deleting(u):
		case slices.Equal(open, []string{management.ActionDelete}) && slices.Equal(rec.Actions, open) &&
			len(rec.Allowances) > 0 && rec.Allowances[0].Initiator == hansUser:
		default:
			errs = append(errs, fmt.Errorf("at generation %d the gate was open for %v, with the record %+v: %w", u.GetGeneration(), open, rec, world.ErrOther))
		}
	}

	if n := openings(list); n != 1 {
		errs = append(errs, fmt.Errorf("the gate opened %d times: %w", n, world.ErrOther))
	}

	return errors.Join(errs...)
}
