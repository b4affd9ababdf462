// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// edit changes something of a part's data by hand.
func (c cluster) edit(ctx context.Context, as client.Client, name, key, value string) error {
	u, err := c.part(ctx, objectKind(), name)
	if err != nil {
		return err
	}

	patch := world.Merge(fmt.Sprintf(`{"spec": {"forProvider": {"manifest": {"data": {%q: %q}}}}}`, key, value))

	return as.Patch(ctx, u, patch)
}

// stored checks that the part's spec has the first version, and what extra it has, and
// that the extra, which nobody composes, is known to be nobody's wish.
func (c cluster) stored(extra string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		data := resource.Map(u.Object, "spec", "forProvider", "manifest", "data")
		if got, more := resource.String(data, "version"), resource.String(data, "extra"); got != "v1" || more != extra {
			return fmt.Errorf("the version is %q and the extra %q, want v1 and %q: %w", got, more, extra, world.ErrOther)
		}

		rec, err := gate.ParseAsked(u)
		if err != nil || (rec == nil) != (extra == "") {
			return fmt.Errorf("annotation %s is %+v (%w)", v1alpha1.AnnotationAsked, rec, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// versions follows the versions that an external object has until the test ends,
// with what else there is that nobody composes.
func (c cluster) versions(t *testing.T, name string) func() []string {
	t.Helper()

	config, err := client.NewWithWatch(running.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	w, err := config.Watch(t.Context(), &corev1.ConfigMapList{},
		client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": c.name + "-" + name})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(w.Stop)

	var seen []string

	return func() []string {
		for {
			select {
			case e := <-w.ResultChan():
				if m, ok := e.Object.(*corev1.ConfigMap); ok && e.Type != watch.Deleted {
					seen = append(seen, m.Data["version"]+m.Data["extra"])
				}
			default:
				return seen
			}
		}
	}
}

// TestWhatIsNotAllowedDoesNotRideAlong edits a managed resource by hand, once
// while its gate is closed, and once while it is open.
func TestWhatIsNotAllowedDoesNotRideAlong(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Store", "handmade")
	c.play(t, []scenario.Step{
		{Title: "A store", Run: func(ctx context.Context) error {
			err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition("handmades", "v1", "data")),
				c.apply(ctx, hans, storeOf("handmades", "handmade", "small")))
			if err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled))
		}},
	})

	seen := c.versions(t, "data")

	c.play(t, []scenario.Step{
		{Title: "What somebody edits by hand over what is composed is put back by Crossplane, for which it asks nobody", Run: func(ctx context.Context) error {
			as := controller(t, "anna@example.com")

			if err := c.edit(ctx, as, "data", "version", "hacked"); err != nil {
				return err
			}

			if said := as.Take(); !mentions(said, "spec.forProvider.manifest.data.version is stored, but is put back before the gate opens") {
				return fmt.Errorf("warnings %q: %w", said, world.ErrOther)
			}

			return rests(ctx, "what was there", all(c.stored(""), c.shows("version", "v1", "data"), c.settled))
		}},
		{Title: "What nobody composes is stored, and remembered as nobody's wish", Run: func(ctx context.Context) error {
			if err := c.edit(ctx, controller(t, "anna@example.com"), "data", "extra", "hacked"); err != nil {
				return err
			}

			return rests(ctx, "an edit", c.stored("hacked"))
		}},
		{Title: "It does not arrive with the next allowed change", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, storeOf("handmades", "handmade", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store",
				all(c.shows("size", "large", "data"), c.stored(""), c.settled, c.putBack("data")))
		}},
		{Title: "While the gate is open an edit by hand is held", Run: func(ctx context.Context) error {
			return c.editWhileOpen(ctx, t)
		}},
		{Title: "The allowed change arrives", Run: func(ctx context.Context) error {
			if err := c.pause(ctx, "data", "null"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a tiny store", all(c.shows("size", "tiny", "data"), c.stored(""), c.settled))
		}},
	})

	for _, version := range seen() {
		if version != "v1" {
			t.Errorf("the external object had version %q", version)
		}
	}
}

// pause has the provider leave a part alone, or not.
func (c cluster) pause(ctx context.Context, name, value string) error {
	u, err := c.part(ctx, objectKind(), name)
	if err != nil {
		return err
	}

	return c.setPaused(ctx, u, value)
}

// setPaused has whoever reconciles an object leave it alone, or not, where the value
// is null.
func (c cluster) setPaused(ctx context.Context, u *unstructured.Unstructured, value string) error {
	return c.Patch(ctx, u, world.Merge(`{"metadata": {"annotations": {"crossplane.io/paused": `+value+`}}}`))
}

// editWhileOpen edits a part whose gate is open for a change that its provider
// does not make yet.
func (c cluster) editWhileOpen(ctx context.Context, t *testing.T) error {
	t.Helper()

	if err := c.pause(ctx, "data", `"true"`); err != nil {
		return err
	}

	if err := c.apply(ctx, hans, storeOf("handmades", "handmade", "tiny")); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "an open gate", func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err == nil && !gate.Exposed(u) {
			err = world.ErrOther
		}

		return err
	}); err != nil {
		return err
	}

	as := controller(t, "anna@example.com")
	if err := c.edit(ctx, as, "data", "version", "hacked"); err != nil {
		return err
	}

	if said := as.Take(); !mentions(said, "spec.forProvider.manifest.data.version stays v1 (asked: hacked)") {
		return fmt.Errorf("warnings %q: %w", said, world.ErrOther)
	}

	return c.stored("")(ctx)
}

// putBack checks that an event on a part reports that it was put back.
func (c cluster) putBack(name string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), name)
		if err != nil {
			return err
		}

		list := &corev1.EventList{}
		if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
			return err
		}

		for _, e := range list.Items {
			if e.InvolvedObject.Name == u.GetName() && e.Reason == "KausalityPutBack" &&
				mentions(e.Message, "spec.forProvider.manifest.data.extra", "anna@example.com") {
				return nil
			}
		}

		return fmt.Errorf("no event on %q tells: %w", u.GetName(), world.ErrOther)
	}
}

// TestWhileTheManagerIsAwayNoManagedResourceIsEdited does not run beside others,
// for which the manager would be away too.
func TestWhileTheManagerIsAwayNoManagedResourceIsEdited(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Store", "unattended")
	ctx := t.Context()

	if err := c.applyFile(ctx, "stores.yaml"); err != nil {
		t.Fatal(err)
	}

	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe"},
		"forProvider":        map[string]any{"manifest": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
	}}}
	u.SetGroupVersionKind(objectKind())
	u.SetNamespace(c.namespace)
	u.SetName("unattended")
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationManagementPolicies: "- '*'\n"})

	if err := asManager(t).Create(ctx, u); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(ctx), u) })

	edit := func(field string) error {
		return controller(t, "anna@example.com").Patch(ctx, u.DeepCopy(), world.Merge(`{"spec": {"forProvider": {"manifest": {"`+field+`": {"a": "b"}}}}}`))
	}

	if err := scenario.Eventually(ctx, "the webhook", func(ctx context.Context) error {
		if err := edit("data"); err != nil {
			return err
		}

		live := u.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}

		if resource.Annotation(live, v1alpha1.AnnotationAsked) == "" {
			return world.ErrOther
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	// The API server takes a second to observe a new guard.
	if err := scenario.Eventually(ctx, "the guard", func(ctx context.Context) error {
		err := c.Patch(ctx, u.DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return errors.Join(world.ErrOther, err)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	manager := running.Process("kausality-manager")
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}

	// 1. The webhook is asked, and cannot be reached.
	if err := edit("binaryData"); err == nil || !mentions(err.Error(), "governed.kausality.io") {
		t.Errorf("while the manager is away: %v", err)
	}

	// 2. Its provider can note what it did, and nothing else.
	provider := controller(t, "system:serviceaccount:crossplane-system:provider-kubernetes")

	for text, passes := range map[string]bool{
		`{"metadata": {"annotations": {"crossplane.io/external-create-succeeded": "2026-01-05T10:00:00Z"}}}`:                          true,
		`{"metadata": {"annotations": {"crossplane.io/external-create-failed": "2026-01-05T10:00:00Z", "kausality.io/trace": "[]"}}}`: false,
		`{"metadata": {"annotations": {"kausality.io/asked": null}}}`:                                                                 false,
		`{"spec": {"forProvider": {"manifest": {"immutable": true}}}}`:                                                                false,
	} {
		if err := provider.Patch(ctx, u.DeepCopy(), world.Merge(text)); (err == nil) != passes {
			t.Errorf("by its provider, %s: %v", text, err)
		}
	}

	// 3. Nobody asks the webhook.
	webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kausality"}}
	if err := c.Delete(ctx, webhooks); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a refusal by the API server itself", func(context.Context) error {
		if err := edit("binaryData"); !apierrors.IsInvalid(err) || !mentions(err.Error(), "Kausality has to look at a change of spec.forProvider") {
			return errors.Join(world.ErrOther, err)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}

	if err := c.Patch(ctx, u.DeepCopy(), world.Merge(`{"metadata": {"labels": {"a": "b"}}}`)); err != nil {
		t.Errorf("what the provider does not act upon: %v", err)
	}

	if err := manager.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "its return", func(context.Context) error { return edit("binaryData") }); err != nil {
		t.Error(err)
	}
}
