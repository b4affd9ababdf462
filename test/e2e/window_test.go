// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// upgrade is an UpgradeAllowance, as tests see it.
type upgrade struct {
	cluster

	name string
}

// newUpgrade applies one, of which everything but its name is given, and which
// goes when the test ends.
func newUpgrade(ctx context.Context, t *testing.T, c cluster, name, spec string) upgrade {
	t.Helper()

	u := upgrade{cluster: c, name: name}

	if err := u.apply(ctx, admin, "{apiVersion: kausality.io/v1alpha1, kind: UpgradeAllowance, metadata: {name: "+name+"}, spec: "+spec+"}"); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := client.IgnoreNotFound(u.Delete(context.WithoutCancel(ctx), u.object())); err != nil {
			t.Error(err)
		}
	})

	return u
}

func (u upgrade) object() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("UpgradeAllowance"))
	out.SetName(u.name)

	return out
}

// typed reads it.
func (u upgrade) typed(ctx context.Context) (*v1alpha1.UpgradeAllowance, error) {
	live := u.object()
	if err := u.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return nil, err
	}

	out := &v1alpha1.UpgradeAllowance{}

	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, out)
}

// is checks whether the window is in force, and why.
func (u upgrade) is(active bool, reason string) check {
	return func(ctx context.Context) error {
		got, err := u.typed(ctx)
		if err != nil {
			return err
		}

		if got.Status.Active != active || got.Status.Reason != reason || got.Status.ObservedGeneration != got.Generation {
			return fmt.Errorf("window %q at generation %d: %+v, want %t for %s: %w", u.name, got.Generation, got.Status, active, reason, world.ErrOther)
		}

		return nil
	}
}

// used checks that the window was so often, or more often: what another write was faster than counts too.
func (u upgrade) used(uses int64) check {
	return func(ctx context.Context) error {
		text, err := scraped(ctx)
		if err != nil {
			return err
		}

		_, rest, _ := strings.Cut(text, fmt.Sprintf("kausality_webhook_window_uses_total{window=%q} ", u.name))
		count, _, _ := strings.Cut(rest, "\n")

		if n, err := strconv.ParseInt(count, 10, 64); err != nil || n < uses {
			return fmt.Errorf("window %q: %q uses, want %d: %w", u.name, count, uses, world.ErrOther)
		}

		return nil
	}
}

// events checks what was reported of the window, in order, each once.
func (u upgrade) events(want ...string) check {
	return func(ctx context.Context) error {
		live, err := u.typed(ctx)
		if err != nil {
			return err
		}

		scheme := runtime.NewScheme()
		if err := eventsv1.AddToScheme(scheme); err != nil {
			return err
		}

		reader, err := client.New(running.Config(), client.Options{Scheme: scheme})
		if err != nil {
			return err
		}

		list := &eventsv1.EventList{}
		if err := reader.List(ctx, list); err != nil {
			return err
		}

		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int {
			return a.EventTime.Compare(b.EventTime.Time)
		})

		var got []string

		for _, e := range list.Items {
			if e.Regarding.UID == live.UID {
				got = append(got, strings.TrimPrefix(e.Reason, "KausalityWindow"))
			}
		}

		if !slices.Equal(got, want) {
			return fmt.Errorf("window %q has events %q, want %q: %w", u.name, got, want, world.ErrOther)
		}

		return nil
	}
}

// end has the window end in a moment.
func (u upgrade) end(ctx context.Context) error {
	until := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)

	return u.Patch(ctx, u.object(), world.Merge(`{"spec": {"validUntil": "`+until+`"}}`))
}

// goldComposition is one whose cache and data carry a label.
func goldComposition(name, version string) string {
	text := storeComposition(name, version, "cache", "data", "queue")

	for _, part := range []string{"cache", "data"} {
		head := "- name: " + part + "\n        base:\n"
		text = strings.Replace(text, head, head+"          metadata: {labels: {tier: gold}}\n", 1)
	}

	return text
}

// crossplaneWindow is one for what Crossplane composes of a store.
const crossplaneWindow = `{
  serviceAccount: "system:serviceaccount:crossplane-system:crossplane",
  validFrom: "2026-01-01T00:00:00Z", validUntil: "2126-01-01T00:00:00Z",
  allow: [
    {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data]},
    {kind: ConfigMap, mutations: [data]},
    {relation: External, mutations: [Update]}], %s}`

func TestACompositionUpdateUnderAWindowTouchesWhatItSelects(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "gold")
	cache, data, queue := "cache", "data", "queue"
	field := "spec.forProvider.manifest.data.version"

	var once, rest upgrade

	version := func(version string) func(context.Context) error {
		return func(ctx context.Context) error { return c.apply(ctx, admin, goldComposition("gold", version)) }
	}

	c.play(t, []scenario.Step{
		{Title: "A store is made, and its gates close", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			if err := errors.Join(version("v1")(ctx), c.apply(ctx, hans, storeOf("gold", "gold", "small"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a store", all(c.shows("version", "v1", cache, data, queue), c.note("version", "v1"), c.settled))
		}},
		{Title: "A new version reaches exactly what the window selects", Run: func(ctx context.Context) error {
			once = newUpgrade(ctx, t, c, "gold-once", fmt.Sprintf(crossplaneWindow,
				"namespaces: [default], selector: {matchLabels: {tier: gold}}, oncePerObject: true"))

			if err := scenario.Eventually(ctx, "a window", once.is(true, v1alpha1.ReasonActive)); err != nil {
				return err
			}

			if err := version("v2")(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a new version of two", all(
				c.shows("version", "v2", cache, data), c.path(cache, field, "UpgradeAllowance/gold-once: Object"),
				c.path(data, field, "UpgradeAllowance/gold-once: Object"), c.says("settled, 2 changes held", "data.version v1 → v2"),
				once.used(2), once.events("Started"))); err != nil {
				return err
			}

			return still(ctx, all(c.shows("version", "v1", queue), c.note("version", "v1"), once.used(2)))
		}},
		{Title: "And the next one nothing, for the window serves each once", Run: func(ctx context.Context) error {
			if err := version("v3")(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "four held changes", c.says("settled, 4 changes held", "→ v3")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("version", "v2", cache, data), c.shows("version", "v1", queue), c.note("version", "v1"), once.used(2)))
		}},
		{Title: "A window for everything lets it through", Run: func(ctx context.Context) error {
			rest = newUpgrade(ctx, t, c, "gold-rest", fmt.Sprintf(crossplaneWindow, "namespaces: [default], selector: {matchLabels: {crossplane.io/composite: gold}}"))

			return scenario.Eventually(ctx, "a new version of all", all(
				c.shows("version", "v3", cache, data, queue), c.note("version", "v3"), c.settled, rest.used(4), once.used(2),
				rest.events("Started"),
				c.path(queue, field, "UpgradeAllowance/gold-rest: Object")))
		}},
		{Title: "Once they are over nothing passes", Run: func(ctx context.Context) error {
			if err := errors.Join(rest.end(ctx), once.end(ctx)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end", all(
				rest.is(false, v1alpha1.ReasonEnded), rest.events("Started", "Ended"),
				once.is(false, v1alpha1.ReasonEnded), once.events("Started", "Ended"))); err != nil {
				return err
			}

			if err := version("v4")(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "four held changes", c.says("settled, 4 changes held", "→ v4")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("version", "v3", cache, data, queue), c.note("version", "v3"), rest.used(4)))
		}},
	})
}

// passes checks that a change of a task is let through, or that it is refused,
// by a dry run.
func (l lab) passes(as client.Client, task *unstructured.Unstructured, want bool) check {
	return func(ctx context.Context) error {
		err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"size": "probed"}}`), client.DryRunAll)
		if want == apierrors.IsForbidden(err) || !apierrors.IsForbidden(err) && err != nil {
			return fmt.Errorf("passes: want %t, got %w", want, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// windowOfTasks is one for what the worker does to the tasks of a namespace.
func (l lab) windowOfTasks(more string) string {
	return `{serviceAccount: "` + worker + `", validFrom: "2026-01-01T00:00:00Z", validUntil: "2126-01-01T00:00:00Z",
  namespaces: [` + l.namespace + `], allow: [
    {apiGroup: lab.example.org, kind: Task, mutations: [spec.size, spec.color, create, delete]},
    {apiGroup: lab.example.org, kind: Fleet, mutations: [spec.ships]}], ` + more + `}`
}

// size changes a task's, for good.
func resize(as client.Client, task *unstructured.Unstructured, size string) check {
	return func(ctx context.Context) error {
		return as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"size": "`+size+`", "color": "`+size+`"}}`))
	}
}

// allowedBy checks that the newest change of a task was under a window.
func (l lab) allowedBy(task *unstructured.Unstructured, window string) check {
	return func(ctx context.Context) error {
		live := task.DeepCopy()
		if err := l.Get(ctx, client.ObjectKeyFromObject(task), live); err != nil {
			return err
		}

		e, err := traceOf(live, "spec.size")
		if err != nil {
			return err
		}

		if last := resource.Annotation(live, v1alpha1.AnnotationLastUpgrade); last != window || e.Initiator != "UpgradeAllowance/"+window {
			return fmt.Errorf("last upgrade %q, initiator %q: %w", last, e.Initiator, world.ErrOther)
		}

		return nil
	}
}
