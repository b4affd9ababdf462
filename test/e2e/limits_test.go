// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestNoGateOpensForDeleteBecauseOfAField(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := newVault(t, "twofold")

	v.play(t, []scenario.Step{
		v.made("", split(setClosed)...),
		{Title: "Both are allowed: Update is served, and nothing else", Run: func(ctx context.Context) error {
			seen, err := v.followed(t) //nolint:contextcheck // It goes on until the test ends.
			if err != nil {
				return err
			}

			if err := v.asked(ctx, "size: small, tier: two, engine: old"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a vault of tier two", all(v.has("tier", "two"), v.settled, v.spent,
				v.gated(v1alpha1.GateClosed, split(setClosed)...), v.synced("True"))); err != nil {
				return err
			}

			if err := still(ctx, v.has("tier", "two")); err != nil {
				return err
			}

			return seen.were(setClosed, setUpdate, setClosed)
		}},
		{Title: "What may not be deleted is not", Run: func(ctx context.Context) error {
			u, err := v.data(ctx)
			if err != nil {
				return err
			}

			if err := errors.Join(v.age(ctx), v.Delete(ctx, u)); err == nil {
				return fmt.Errorf("it is deleted: %w", world.ErrOther)
			}

			return still(ctx, all(v.has("tier", "two"), v.gated(v1alpha1.GateClosed, split(setClosed)...)))
		}},
	})
}

func TestAnExternalObjectIsMadeAnewUnderDeleteAndCreateAlone(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := newVault(t, "anew")

	v.play(t, []scenario.Step{
		v.made("", split(setClosed)...),
		{Title: "With the gate closed what somebody removes is not made again", Run: func(ctx context.Context) error {
			external, err := v.configMap(ctx, "anew-data")
			if err != nil {
				return err
			}

			if err := errors.Join(v.age(ctx), v.Delete(ctx, external), v.touch(ctx)); err != nil {
				return err
			}

			return still(ctx, all(v.lacks, v.gated(v1alpha1.GateClosed, split(setClosed)...)))
		}},
		{Title: "Another engine is allowed to be made anew, and nothing else is changed", Run: func(ctx context.Context) error {
			seen, err := v.followed(t) //nolint:contextcheck // It goes on until the test ends.
			if err != nil {
				return err
			}

			// Nobody may ask for another tier but hans.
			if err := v.Patch(ctx, v.object(), world.Merge(`{"spec": {"tier": "unasked"}}`)); err != nil {
				return err
			}

			as, err := v.as(hans)
			if err != nil {
				return err
			}

			if err := as.Patch(ctx, v.object(), world.Merge(`{"spec": {"engine": "new"}}`)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a vault made anew", all(v.has("engine", "new"), v.has("tier", "one"), v.has("size", "small"),
				v.gated(v1alpha1.GateClosed, split(setClosed)...), v.says("settled, 1 change held"), v.spent)); err != nil {
				return err
			}

			return seen.were(setClosed, setRemake, setClosed)
		}},
		{Title: "Where there is one still, it is not updated", Run: func(ctx context.Context) error {
			as, err := v.as(hans)
			if err != nil {
				return err
			}

			if err := as.Patch(ctx, v.object(), world.Merge(`{"spec": {"engine": "newer"}}`)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "an open gate", v.gated(v1alpha1.GateOpen, split(setRemake)...)); err != nil {
				return err
			}

			if err := still(ctx, all(v.has("engine", "new"), v.gated(v1alpha1.GateOpen, split(setRemake)...))); err != nil {
				return err
			}

			// Who is to make it anew removes it first.
			old, err := v.configMap(ctx, "anew-data")
			if err != nil {
				return err
			}

			if err := errors.Join(v.age(ctx), v.Delete(ctx, old), v.touch(ctx)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "another new vault", all(v.has("engine", "newer"), v.has("tier", "one"),
				v.gated(v1alpha1.GateClosed, split(setClosed)...), v.spent))
		}},
	})
}

// object is the vault as far as its identity goes.
func (v vault) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v.kind)
	u.SetNamespace(v.namespace)
	u.SetName(v.name)

	return u
}

// touch has the provider read the managed resource now.
func (v vault) touch(ctx context.Context) error {
	return v.patchData(ctx, "touched", strconv.Quote(time.Now().String()))
}

// age makes the managed resource an old one. Of a new one, providers take half
// a minute to believe that its external object is gone.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0,
// pkg/reconciler/managed/reconciler.go, defaultGracePeriod.
func (v vault) age(ctx context.Context) error {
	ago := strconv.Quote(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))

	return errors.Join(v.patchData(ctx, "crossplane.io/external-create-pending", ago),
		v.patchData(ctx, "crossplane.io/external-create-succeeded", ago))
}

// lacks checks that the external object is not there.
func (v vault) lacks(ctx context.Context) error {
	_, err := v.configMap(ctx, v.name+"-data")
	if err == nil {
		err = fmt.Errorf("the external object of %q is there: %w", v.name, world.ErrOther)
	}

	return client.IgnoreNotFound(err)
}

func TestAGateIsNeverWiderThanItsCompositionAsksFor(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := newVault(t, "bounded")

	v.play(t, []scenario.Step{
		v.made("[Observe, Create, Update]", setClosed),
		{Title: "Update and Delete are allowed: Update alone is served", Run: func(ctx context.Context) error {
			seen, err := v.followed(t) //nolint:contextcheck // It goes on until the test ends.
			if err != nil {
				return err
			}

			if err := v.asked(ctx, "size: small, tier: two, engine: old"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a vault of tier two",
				all(v.has("tier", "two"), v.gated(v1alpha1.GateClosed, setClosed), v.settled, v.spent)); err != nil {
				return err
			}

			return seen.were(setClosed, setNarrow, setClosed)
		}},
		{Title: "It goes, and leaves behind what its Composition does not ask to delete", Run: v.goesAlone},
	})
}

// goesAlone has hans delete the vault, and checks that its external object
// stays.
func (v vault) goesAlone(ctx context.Context) error {
	xr, err := v.xr(ctx)
	if err != nil {
		return err
	}

	if err := v.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "the end of the vault", all(v.ended, func(ctx context.Context) error {
		parts, err := v.parts(ctx, objectKind())
		if err == nil && len(parts) > 0 {
			err = fmt.Errorf("its managed resource is still there: %w", world.ErrOther)
		}

		return err
	})); err != nil {
		return err
	}

	return still(ctx, v.outside("data"))
}

func TestWhatIsMeantToBeObservedIsLeftAlone(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := newVault(t, "observed")

	v.play(t, []scenario.Step{
		{Title: "A vault that only looks at something is made", Run: func(ctx context.Context) error {
			if err := v.apply(ctx, admin, `{apiVersion: v1, kind: ConfigMap, metadata: {name: observed-data, namespace: default},
				data: {size: theirs, tier: theirs}}`); err != nil {
				return err
			}

			if err := v.composed(ctx, "[Observe]"); err != nil {
				return err
			}

			if err := v.asked(ctx, "size: small, tier: one"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a vault", all(v.synced("True"), v.settled))
		}},
		{Title: "What is allowed of it changes nothing outside, and ends", Run: func(ctx context.Context) error {
			seen, err := v.followed(t) //nolint:contextcheck // It goes on until the test ends.
			if err != nil {
				return err
			}

			if err := v.asked(ctx, "size: large, tier: two"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a large vault", all(v.wants("size", "large"), v.wants("tier", "two"),
				v.synced("True"), v.settled, v.spent)); err != nil {
				return err
			}

			if err := still(ctx, all(v.has("size", "theirs"), v.has("tier", "theirs"))); err != nil {
				return err
			}

			return seen.were(setClosed)
		}},
		{Title: "It goes, and leaves alone what is not its own", Run: v.goesAlone},
	})
}

func TestAPausedResourceGoesOnWhereItWasPaused(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	v := newVault(t, "paused")

	v.play(t, []scenario.Step{
		v.made("", split(setClosed)...),
		{Title: "Its Composition pauses it", Run: func(ctx context.Context) error {
			if err := v.composed(ctx, "[]"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a paused vault", v.paused)
		}},
		{Title: "What is allowed meanwhile waits", Run: func(ctx context.Context) error {
			if err := v.asked(ctx, "size: large, tier: one, engine: old"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a change that waits", v.wants("size", "large")); err != nil {
				return err
			}

			return still(ctx, all(v.has("size", "small"), v.paused))
		}},
		{Title: "And arrives afterwards, under the same allowance", Run: func(ctx context.Context) error {
			if err := v.composed(ctx, ""); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large vault", all(v.has("size", "large"), v.gated(v1alpha1.GateClosed, split(setClosed)...),
				v.settled, v.spent, v.tracedTo(hansName)))
		}},
	})
}

// paused checks that nothing can be done about the managed resource.
func (v vault) paused(ctx context.Context) error {
	u, err := v.data(ctx)
	if err != nil {
		return err
	}

	if set, ok := resource.Value(u.Object, "spec", "managementPolicies"); !ok || len(policies(u)) > 0 {
		return fmt.Errorf("managementPolicies are %v: %w", set, world.ErrOther)
	}

	return v.synced("ReconcilePaused")(ctx)
}

// tracedTo checks who asked for the size.
func (v vault) tracedTo(initiator string) check {
	return func(ctx context.Context) error {
		u, err := v.data(ctx)
		if err != nil {
			return err
		}

		e, err := traceOf(u, "spec.forProvider.manifest.data.size")
		if err == nil && e.Initiator != initiator {
			err = fmt.Errorf("%+v: %w", e, world.ErrOther)
		}

		return err
	}
}

func TestAResourceThatIsMadePausedIsMadeWhenItNoLongerIs(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := newVault(t, "late")

	v.play(t, []scenario.Step{
		{Title: "A paused vault is made", Run: func(ctx context.Context) error {
			if err := v.composed(ctx, "[]"); err != nil {
				return err
			}

			if err := v.asked(ctx, "size: small, tier: one, engine: old"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a paused vault", v.paused); err != nil {
				return err
			}

			return still(ctx, all(v.paused, v.lacks))
		}},
		{Title: "It is no longer paused", Run: func(ctx context.Context) error {
			if err := v.composed(ctx, ""); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small vault",
				all(v.has("size", "small"), v.gated(v1alpha1.GateClosed, split(setClosed)...), v.settled))
		}},
	})
}

func TestWhileCrossplanesAnnotationPausesAnObjectItsChangeWaits(t *testing.T) {
	world.Long(t)
	t.Parallel()

	pauses := map[string]struct {
		reason string
		// pause or unpause.
		pause func(ctx context.Context, v vault, value string) error
		// waits says that it does.
		waits func(v vault) check
	}{
		"managed": {
			reason: "The gate is open, and its provider does not look.",
			pause: func(ctx context.Context, v vault, value string) error {
				return v.patchData(ctx, "crossplane.io/paused", value)
			},
			waits: func(v vault) check {
				return all(v.wants("size", "large"), v.gated(v1alpha1.GateOpen, split(setUpdate)...), v.synced("ReconcilePaused"))
			},
		},
		"composite": {
			reason: "Crossplane does not look, so nothing is asked of the managed resource.",
			pause: func(ctx context.Context, v vault, value string) error {
				return v.Patch(ctx, v.object(), world.Merge(`{"metadata": {"annotations": {"crossplane.io/paused": `+value+`}}}`))
			},
			waits: func(v vault) check {
				return all(v.wants("size", "small"), v.gated(v1alpha1.GateClosed, split(setClosed)...), v.carriesOn)
			},
		},
	}

	for name, tc := range pauses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			v := newVault(t, "paused-"+name)

			v.play(t, []scenario.Step{
				v.made("", split(setClosed)...),
				{Title: "Its change waits", Run: func(ctx context.Context) error {
					if err := tc.pause(ctx, v, `"true"`); err != nil {
						return err
					}

					if err := v.asked(ctx, "size: large, tier: one, engine: old"); err != nil {
						return err
					}

					if err := scenario.Eventually(ctx, tc.reason, tc.waits(v)); err != nil {
						return err
					}

					return still(ctx, all(tc.waits(v), v.has("size", "small")))
				}},
				{Title: "And arrives afterwards", Run: func(ctx context.Context) error {
					if err := tc.pause(ctx, v, "null"); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "a large vault", all(v.has("size", "large"),
						v.gated(v1alpha1.GateClosed, split(setClosed)...), v.settled, v.spent, v.tracedTo(hansName)))
				}},
			})
		})
	}
}

// carriesOn checks that the vault keeps its allowances.
func (v vault) carriesOn(ctx context.Context) error {
	if v.spent(ctx) == nil {
		return fmt.Errorf("vault %q carries no allowance: %w", v.name, world.ErrOther)
	}

	return nil
}
