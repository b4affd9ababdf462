// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// ordinary are the parts of an App that have no gate.
func ordinary() []string { return []string{"deployment", "service", "secret"} }

// changesByHand are changes of an App's parts that somebody makes, of each part several.
func changesByHand() map[string][]client.Patch {
	json := func(text string) client.Patch { return client.RawPatch(types.JSONPatchType, []byte(text)) }

	return map[string][]client.Patch{
		"deployment": {
			json(`[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "2"}]`),
			json(`[{"op": "remove", "path": "/spec/template/spec/containers/0/env/1"}]`),
			json(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "by-hand"}]`),
		},
		"service": {edits()["service"], json(`[{"op": "remove", "path": "/spec/selector/app"}]`)},
		"secret":  {edits()["secret"], json(`[{"op": "remove", "path": "/data/version"}]`)},
	}
}

// heals checks that a part is as it was, and that the App has settled.
func (a app) heals(part string, was map[string]any) check {
	return func(ctx context.Context) error {
		u, err := a.live(ctx, part)
		if err != nil {
			return err
		}

		if diff := cmp.Diff(was, content(u)); diff != "" {
			return fmt.Errorf("the %s is not as it was, -was, +is:\n%s: %w", part, diff, world.ErrOther)
		}

		return a.settled(ctx)
	}
}

// TestWhatPeopleChangeByHandHeals is about an App, of which people change and delete what has no gate.
func TestWhatPeopleChangeByHandHeals(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	a := newApp(t, "healed")

	a.play(t, []scenario.Step{
		{Title: "It is composed", Run: func(ctx context.Context) error {
			if err := a.apply(ctx, admin, templated(a.name, "v1", stepKausality)); err != nil {
				return err
			}

			if err := a.apply(ctx, hans, appOf(a.name, a.name, "web-1")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "an App", all(a.runs("web-1"), a.settled, a.spent))
		}},
		{Title: "What somebody changes is put back", Run: func(ctx context.Context) error {
			for part, patches := range changesByHand() {
				for i, patch := range patches {
					if err := a.changedAndHealed(ctx, part, patch); err != nil {
						return fmt.Errorf("change %d: %w", i, err)
					}
				}
			}

			return nil
		}},
		{Title: "It is told, with the change that it restores", Run: func(ctx context.Context) error {
			xr, err := a.xr(ctx)
			if err != nil {
				return err
			}

			u, err := a.live(ctx, "deployment")
			if err != nil {
				return err
			}

			text, err := kausality(ctx, hans, "trace", "deployment.apps/"+u.GetName(), "-n", u.GetNamespace(), "--all")
			if err != nil || !mentions(text, "containers[0].image of generation", ", repaired at ", hansName) {
				return fmt.Errorf("trace says %q: %w", text, errors.Join(err, world.ErrOther))
			}

			return scenario.Eventually(ctx, "an event", func(ctx context.Context) error {
				list, err := eventsOf(ctx, xr, string(v1alpha1.EventReasonRepaired))
				if err != nil || !mentions(strings.Join(notes(list), "; "), "containers[0].image", "Secret ", "spec.selector.app") {
					return fmt.Errorf("events are %v: %w", notes(list), errors.Join(err, world.ErrOther))
				}

				return nil
			})
		}},
		{Title: "What somebody deletes is created again", Run: func(ctx context.Context) error {
			for _, part := range ordinary() {
				if err := a.deletedAndHealed(ctx, part); err != nil {
					return err
				}
			}

			return nil
		}},
		{Title: "Whoever changes it once a second is not fought", Run: a.fought},
		{Title: "Another field is put back meanwhile", Run: func(ctx context.Context) error {
			u, err := a.live(ctx, "service")
			if err != nil {
				return err
			}

			was := content(u) // The patch changes it.

			err = a.Patch(ctx, u, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/ports/0/name", "value": "by-hand"}]`)), client.FieldOwner("kubectl-patch"))
			if err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a Service that is as it was", a.heals("service", was))
		}},
	})
}

// changedAndHealed changes a part by hand, and waits until it is repaired. Crossplane may undo a change by what it read before that,
// which is no repair: then it is changed once more.
func (a app) changedAndHealed(ctx context.Context, part string, patch client.Patch) error {
	for range 10 {
		if repaired, err := a.changed(ctx, part, patch); err != nil || repaired {
			return err
		}
	}

	return fmt.Errorf("the %s is as it was, and no trace says that it was repaired: %w", part, world.ErrOther)
}

// changed changes a part by hand, and waits until it is as it was. It reports whether that was a repair.
func (a app) changed(ctx context.Context, part string, patch client.Patch) (repaired bool, err error) {
	if err := rests(ctx, "an App", a.settled); err != nil { // Crossplane may apply what it read before.
		return false, err
	}

	u, err := a.live(ctx, part)
	if err != nil {
		return false, err
	}

	was, before := content(u), lastRepair(u)
	if err := a.Patch(ctx, u, patch, client.FieldOwner("kubectl-patch")); err != nil {
		return false, fmt.Errorf("cannot change the %s: %w", part, err)
	}

	if cmp.Equal(was, content(u)) {
		return false, fmt.Errorf("the %s is as it was: %w", part, world.ErrOther)
	}

	if err := scenario.Eventually(ctx, "a "+part+" that is as it was", a.heals(part, was)); err != nil {
		return false, err
	}

	u, err = a.live(ctx, part)

	return err == nil && lastRepair(u).After(before), err
}

// lastRepair is when an object was repaired last, by its trace.
func lastRepair(u *unstructured.Unstructured) time.Time {
	var out time.Time

	entries, _ := allowance.ParseTrace(u) // What does not parse names nothing.
	for _, e := range entries {
		if e.Repaired != nil && e.Repaired.After(out) {
			out = e.Repaired.Time
		}
	}

	return out
}

// deletedAndHealed deletes a part by hand, and waits until another one is as it was.
func (a app) deletedAndHealed(ctx context.Context, part string) error {
	u, err := a.live(ctx, part)
	if err != nil {
		return err
	}

	if err := a.Delete(ctx, u, client.PropagationPolicy("Background")); err != nil {
		return fmt.Errorf("cannot delete the %s: %w", part, err)
	}

	return scenario.Eventually(ctx, "another "+part, func(ctx context.Context) error {
		now, err := a.live(ctx, part)
		if err != nil {
			return err
		}

		if now.GetUID() == u.GetUID() {
			return fmt.Errorf("the %s is not deleted yet: %w", part, world.ErrOther)
		}

		return all(a.runs("web-1"), a.settled)(ctx)
	})
}

// memory is what a Deployment's first container asks for.
func memory(u *unstructured.Unstructured) string {
	for _, c := range resource.List(u.Object, "spec", "template", "spec", "containers") {
		m, _ := c.(map[string]any)

		return resource.String(m, "resources", "requests", "memory")
	}

	return ""
}

// asks has somebody change what a Deployment asks for, another value for each round, and reports whether it is kept for a second.
func (a app) asks(ctx context.Context, round int) (kept bool, err error) {
	u, err := a.live(ctx, "deployment")
	if err != nil {
		return false, err
	}

	want := fmt.Sprintf("%dMi", round+1)
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/memory", "value": "`+want+`"}]`))

	if err := a.Patch(ctx, u, patch, client.FieldOwner("kubectl-patch")); err != nil {
		return false, err
	}

	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(time.Second + time.Duration(round%5)*100*time.Millisecond): // Not in step with Crossplane.
	}

	u, err = a.live(ctx, "deployment")

	return err == nil && memory(u) == want, err
}

// fought has somebody change what a Deployment asks for about once a second. What Crossplane writes over it counts once a repair
// waits: a change that comes while Crossplane reads and applies is overwritten before the function sees it.
func (a app) fought(ctx context.Context) error {
	const (
		atMost = 50
		rounds = 20
	)

	if err := rests(ctx, "an App", a.settled); err != nil {
		return err
	}

	waits := a.says("1 change held", " of Deployment", "next repair at", "repaired 1 of 4 times since")
	overwritten, began := 0, -1

	for i := range atMost {
		kept, err := a.asks(ctx, i)

		switch {
		case err != nil:
			return err
		case began < 0 && waits(ctx) == nil:
			began = i
		case began >= 0 && !kept && i > began+rounds/2:
			return fmt.Errorf("it is overwritten still, %d rounds after its repair waits: %w", i-began, world.ErrOther)
		case began >= 0 && !kept:
			overwritten++
		}

		if began >= 0 && i == began+rounds {
			break
		}
	}

	if overwritten > rounds/4 {
		return fmt.Errorf("it was overwritten %d times in %d while its repair waits: %w", overwritten, rounds, world.ErrOther)
	}

	if err := scenario.Eventually(ctx, "a repair that waits", waits); err != nil {
		return err
	}

	u, err := a.live(ctx, "deployment")
	if err != nil {
		return err
	}

	if text := resource.Annotation(u, v1alpha1.AnnotationAllowances); text != "" {
		return fmt.Errorf("a repair gave allowances, %s: %w", text, world.ErrOther)
	}

	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/memory", "value": "1Gi"}]`))
	if err := a.Patch(ctx, u, patch, client.FieldOwner("kubectl-patch")); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "an App that is as it was", all(a.runs("web-1"), a.settled))
}
