// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package older_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestADiskIsMadeAndChangedByWhoMay(t *testing.T) {
	world.Long(t)

	t.Parallel()

	c := newClaimed(t, "changed")
	world.Eventually(t, "a disk, and its gate closed to all but Observe", c.settled(1))

	_, _, disk, err := c.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	h := c.follow(t, disk.GetName())

	stays(t, "what is outside", c.settled(1))
	c.resize(t, c.hans, 2, `"DISK-2"`)
	world.Eventually(t, "the size that hans asked for", c.settled(2))

	// Nobody repairs what changes by itself behind a closed gate.
	outside.Drift(disk.GetName(), map[string]any{"size": 7})
	stays(t, "the drift", func(context.Context) error { return isOutside(disk.GetName(), 7) })

	sets, denied := h.seen()
	if diff := cmp.Diff([]string{"Observe", "Observe,Update", "Observe"}, sets); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}

	if len(denied) > 0 {
		t.Errorf("the provider is not content: %v", denied)
	}

	if got := changes(disk.GetName(), external.Update); got != 1 {
		t.Errorf("%d updates, want 1: %v", got, outside.Changes(disk.GetName()))
	}

	_, _, disk, err = c.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	checkTrace(t, disk)
}

// checkTrace checks that a disk says who asked for its size, and by which ticket.
func checkTrace(t *testing.T, disk *unstructured.Unstructured) {
	t.Helper()

	trace, err := allowance.ParseTrace(disk)
	if err != nil {
		t.Fatal(err)
	}

	i := slices.IndexFunc(trace, func(e v1alpha1.TraceEntry) bool { return e.Field == "spec.forProvider.size" })
	if i < 0 {
		t.Fatalf("no trace of the size: %+v", trace)
	}

	kinds := make([]string, 0, len(trace[i].Trace))
	for _, hop := range trace[i].Trace {
		kinds = append(kinds, hop.Kind)
	}

	if diff := cmp.Diff([]string{"DiskClaim", "XDisk", "Disk"}, kinds); diff != "" || trace[i].Initiator != "hans@example.com" {
		t.Errorf("initiator %q, way (-want +got):\n%s", trace[i].Initiator, diff)
	}

	if got := trace[i].Trace[0].Attestations["metadata.annotations[ticket]"]; got != "DISK-2" {
		t.Errorf("ticket %q, want DISK-2", got)
	}
}

func TestAChangeThatNobodyMayAskForIsHeld(t *testing.T) {
	world.Long(t)

	t.Parallel()

	c := newClaimed(t, "held")
	world.Eventually(t, "a disk", c.settled(1))

	_, xr, disk, err := c.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	h := c.follow(t, disk.GetName())

	// Past the claim, whose XR has used what making it allowed: the value is kept, and nothing is refused.
	if err := c.anna.Patch(t.Context(), xr, world.Merge(`{"spec": {"size": 5}}`)); err != nil {
		t.Fatal(err)
	}

	if got := resource.Int(xr.Object, "spec", "size"); got != 1 {
		t.Errorf("anna made the size of the XR %d", got)
	}

	// Without a ticket, and without the right to.
	c.resize(t, c.hans, 2, "null")
	world.Eventually(t, "word of what is held", c.holds)
	c.resize(t, c.anna, 3, `"DISK-3"`)
	stays(t, "what is outside", func(context.Context) error { return isOutside(disk.GetName(), 1) })

	sets, denied := h.seen()
	if diff := cmp.Diff([]string{"Observe"}, sets); diff != "" || len(denied) > 0 {
		t.Errorf("sets (-want +got):\n%s\nthe provider has against them: %v", diff, denied)
	}

	if got := changes(disk.GetName(), external.Update); got > 0 {
		t.Errorf("%d updates: %v", got, outside.Changes(disk.GetName()))
	}
}

// holds checks that the claim says that its size is held.
func (c claimed) holds(ctx context.Context) error {
	claim, _, _, err := c.all(ctx)
	if err != nil {
		return err
	}

	if got, _ := resource.ConditionOf(claim, v1alpha1.ConditionKausality); !strings.Contains(got.Message, "spec.size") {
		return fmt.Errorf("the condition of the claim is %+v: %w", got, world.ErrOther)
	}

	return nil
}

func TestADiskThatNobodyMayDeleteStays(t *testing.T) {
	world.Long(t)

	t.Parallel()

	c := newClaimed(t, "kept")
	world.Eventually(t, "a disk", c.settled(1))

	_, xr, disk, err := c.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Delete(t.Context(), disk.DeepCopy()); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("deletion of the managed resource under a closed gate: %v, want a refusal", err)
	}

	if err := c.anna.Delete(t.Context(), c.claim.DeepCopy()); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "the end of claim and XR", func(ctx context.Context) error { return c.gone(ctx, c.claim, xr) })
	stays(t, "the disk", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(disk), disk); err != nil {
			return err
		}

		return isOutside(disk.GetName(), 1)
	})
}

func TestADiskGoesWithItsClaim(t *testing.T) {
	world.Long(t)

	t.Parallel()

	for name, how := range map[string]metav1.DeletionPropagation{
		"back": metav1.DeletePropagationBackground, "fore": metav1.DeletePropagationForeground,
	} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()

			c := newClaimed(t, name)
			world.Eventually(t, "a disk", c.settled(1))

			_, xr, disk, err := c.all(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			world.Eventually(t, "an XR that is kept", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
					return err
				}

				if !slices.Contains(xr.GetFinalizers(), v1alpha1.Finalizer) {
					return fmt.Errorf("finalizers %v: %w", xr.GetFinalizers(), world.ErrOther)
				}

				return nil
			})

			h := c.follow(t, disk.GetName())

			if err := c.hans.Delete(t.Context(), c.claim.DeepCopy(), client.PropagationPolicy(how)); err != nil {
				t.Fatal(err)
			}

			world.Eventually(t, "the end of all", func(ctx context.Context) error { return c.gone(ctx, c.claim, xr, disk) })

			if state, ok := outside.State(disk.GetName()); ok || changes(disk.GetName(), external.Delete) != 1 {
				t.Errorf("outside is %v (%t), changed by %v", state, ok, outside.Changes(disk.GetName()))
			}

			sets, denied := h.seen()
			if diff := cmp.Diff([]string{"Observe", "Observe,Delete"}, sets); diff != "" || len(denied) > 0 {
				t.Errorf("sets (-want +got):\n%s\nthe provider has against them: %v", diff, denied)
			}
		})
	}
}

// gone checks that objects are gone.
func (c claimed) gone(ctx context.Context, list ...*unstructured.Unstructured) error {
	for _, u := range list {
		err := c.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
		if err == nil {
			return fmt.Errorf("%s %q is still there: %w", u.GetKind(), u.GetName(), world.ErrOther)
		}

		if !apierrors.IsNotFound(err) {
			return err
		}
	}

	return nil
}
