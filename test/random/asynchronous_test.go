// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAnUpdateThatFailsAfterItWasReportedSyncedIsAppliedUnderTheSameAllowance
// has an asynchronous provider report a change as synced that then fails, twice.
func TestAnUpdateThatFailsAfterItWasReportedSyncedIsAppliedUnderTheSameAllowance(t *testing.T) {
	s := server{cast: newCast(t), namespace: deny, name: "fails-later"}
	ctx := t.Context()
	seen := follow(ctx, s.admin)

	// 1. A server whose first background operation has succeeded.
	world.Must(t, s.make(ctx, []any{"Asynchronous"}, parameters{"size": int64(1)}))
	world.Must(t, eventually(ctx, "a server", s.settled(parameters{"size": int64(1)})))

	// 2. A change that the external system fails to make, after a while.
	outside.Trouble(s.name, external.Trouble{Fail: 2, Slow: 500 * time.Millisecond})
	world.Must(t, s.change(ctx, parameters{"size": int64(2)}))

	u, err := s.live(ctx)
	world.Must(t, err)

	asked, err := allowance.Parse(u)
	if err != nil || len(asked) != 1 {
		t.Fatalf("allowances %+v, %v", asked, err)
	}

	// 3. It is applied, and then the gate closes.
	world.Must(t, eventually(ctx, "the change", s.settled(parameters{"size": int64(2)})))

	// The watch may be behind.
	world.Must(t, eventually(ctx, "the gate open and synced, open and failed, open and applied, closed", func(context.Context) error {
		versions := seen.versions(s.name)
		if !showsInOrder(versions,
			func(u *unstructured.Unstructured) bool { return open(u) && syncedSinceOpening(u) && !failed(u) },
			func(u *unstructured.Unstructured) bool { return open(u) && failed(u) },
			func(u *unstructured.Unstructured) bool {
				return open(u) && syncedSinceOpening(u) && !failed(u) && shown(u) == 2
			},
			func(u *unstructured.Unstructured) bool { return !open(u) && shown(u) == 2 },
		) {
			return fmt.Errorf("saw\n%s: %w", brief(versions), world.ErrOther)
		}

		return nil
	}))

	// 4. Under one allowance, of which nothing is left.
	changes := outside.Changes(s.name)[1:] // After its creation.
	if len(changes) != 3 || !changes[2].Applied || changes[0].Applied || changes[1].Applied {
		t.Errorf("Want two calls that fail and one that does not: %v", changes)
	}

	for _, c := range changes {
		rec := recordOf(c)
		if len(rec.Allowances) != 1 || rec.Allowances[0].Generation != asked[0].Generation || rec.Allowances[0].Initiator != hansName {
			t.Errorf("It was to be made under the allowance of generation %d: %s", asked[0].Generation, c)
		}
	}

	if wrong := seen.wrong(s.name); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// TestAChangeThatIsLostWithItsProviderIsMadeAgain kills the provider while a
// change is under way that it has reported as synced.
func TestAChangeThatIsLostWithItsProviderIsMadeAgain(t *testing.T) {
	s := server{cast: newCast(t), namespace: deny, name: "lost"}
	ctx := t.Context()

	world.Must(t, s.make(ctx, []any{"Asynchronous"}, parameters{"size": int64(1)}))
	world.Must(t, eventually(ctx, "a server", s.settled(parameters{"size": int64(1)})))

	outside.Trouble(s.name, external.Trouble{Slow: 30 * time.Second})
	world.Must(t, s.change(ctx, parameters{"size": int64(2)}))
	world.Must(t, eventually(ctx, "a report of success", func(ctx context.Context) error {
		if u, err := s.live(ctx); err != nil || !open(u) || !syncedSinceOpening(u) || len(outside.Changes(s.name)) < 2 {
			return errors.Join(world.ErrOther, err)
		}

		return nil
	}))

	provider := running.Process(processProvider)
	world.Must(t, provider.Kill())
	outside.Trouble(s.name, external.Trouble{})

	// Only what the resource shows tells that the change is lost.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(pace) {
		if u, err := s.live(ctx); err != nil || !open(u) {
			t.Fatalf("the gate closed before the change was seen: %v", err)
		}
	}

	world.Must(t, provider.Restart(ctx))
	world.Must(t, eventually(ctx, "the change", s.settled(parameters{"size": int64(2)})))
}

// TestWhatChangesByItselfIsLeftAlone has an external object drift.
func TestWhatChangesByItselfIsLeftAlone(t *testing.T) {
	s := server{cast: newCast(t), namespace: deny, name: "drifts"}
	ctx := t.Context()

	world.Must(t, s.make(ctx, nil, parameters{"size": int64(1)}))
	world.Must(t, eventually(ctx, "a server", s.settled(parameters{"size": int64(1)})))

	changes := len(outside.Changes(s.name))
	outside.Drift(s.name, parameters{"size": int64(7)})

	// 1. The provider sees it, more than once, and does nothing.
	world.Must(t, eventually(ctx, "what is there", func(ctx context.Context) error {
		if u, err := s.live(ctx); err != nil || shown(u) != 7 {
			return errors.Join(world.ErrOther, err)
		}

		return nil
	}))

	looks := len(outside.Calls(s.name))
	world.Must(t, eventually(ctx, "more looks", func(context.Context) error {
		if len(outside.Calls(s.name)) < looks+2 {
			return world.ErrOther
		}

		return nil
	}))

	if n := len(outside.Changes(s.name)); n != changes {
		t.Errorf("%d calls that are not allowed", n-changes)
	}

	// 2. The next change that somebody asks for waits: it would revert that, too.
	world.Must(t, s.change(ctx, parameters{"color": "red"}))
	looks = len(outside.Calls(s.name))
	world.Must(t, eventually(ctx, "more looks", func(context.Context) error {
		if len(outside.Calls(s.name)) < looks+2 {
			return world.ErrOther
		}

		return nil
	}))

	if n := len(outside.Changes(s.name)); n != changes {
		t.Errorf("%d calls that are not allowed", n-changes)
	}

	// 3. Once that is reverted outside, it is applied.
	outside.Drift(s.name, parameters{"size": int64(1)})
	world.Must(t, eventually(ctx, "the change", s.settled(parameters{"size": int64(1), "color": "red"})))
}

func open(u *unstructured.Unstructured) bool {
	rec, err := allowance.ParseGate(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen && !rec.Creating
}

// syncedSinceOpening reports whether the provider reports to have applied what the
// gate is open for, or anything: as upjet's, an asynchronous one says so for no
// generation in particular.
func syncedSinceOpening(u *unstructured.Unstructured) bool {
	rec, _ := allowance.ParseGate(u)
	c, _ := resource.ConditionOf(u, resource.ConditionSynced)

	return rec != nil && c.True() && (c.ObservedGeneration == 0 || c.ObservedGeneration >= rec.Generation)
}

func failed(u *unstructured.Unstructured) bool {
	c, _ := resource.ConditionOf(u, resource.ConditionLastAsyncOperation)

	return c.Status == "False"
}

// shown is the size that the status shows.
func shown(u *unstructured.Unstructured) int64 {
	return resource.Int(u.Object, "status", "atProvider", "size")
}

// showsInOrder reports whether among versions are some that are like this, in this
// order.
func showsInOrder(versions []*unstructured.Unstructured, like ...func(*unstructured.Unstructured) bool) bool {
	for _, u := range versions {
		if len(like) > 0 && like[0](u) {
			like = like[1:]
		}
	}

	return len(like) == 0
}

// recordOf is the gate's record as the provider saw it when it made a call.
func recordOf(c external.Call) v1alpha1.GateRecord {
	u := &unstructured.Unstructured{}
	u.SetAnnotations(c.Managed.Annotations)

	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil {
		return v1alpha1.GateRecord{}
	}

	return *rec
}
