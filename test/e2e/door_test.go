// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// holds checks that kausality.io/held of an object names one change that is held, and
// who asked for it; nobody where Crossplane did.
func holds(u *unstructured.Unstructured, field, from, to, user string) error {
	list, err := allowance.ParseHeld(u)
	if err != nil {
		return err
	}

	if len(list) != 1 || list[0].Field != field || list[0].From != from || list[0].To != to || allowance.Author(list[0]) != user || list[0].Digest == "" {
		return fmt.Errorf("annotation %s is %+v, want %s from %q to %q by %q: %w", v1alpha1.AnnotationHeld, list, field, from, to, user, world.ErrOther)
	}

	return nil
}

// dataField is a field of a part's data.
func dataField(key string) string { return "spec.forProvider.manifest.data." + key }

// hacked is what nobody may make of anything.
const hacked = "hacked"

// edit has anna change something of the part's data by hand, which is held: she is told
// so, and what is stored then has the old value, "" for none, and names hers.
func (c cluster) edit(ctx context.Context, t *testing.T, key, from string) error {
	t.Helper()

	u, err := c.part(ctx, objectKind(), "data")
	if err != nil {
		return err
	}

	as := controller(t, annaName)
	if err := as.Patch(ctx, u, world.Merge(fmt.Sprintf(`{"spec": {"forProvider": {"manifest": {"data": {%q: %q}}}}}`, key, hacked))); err != nil {
		return err
	}

	return keptAs(u, as, key, from)
}

// keptAs checks the answer to a change of the part's data by anna: see edit.
func keptAs(u *unstructured.Unstructured, as *world.Warned, key, from string) error {
	if got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", key); got != from {
		return fmt.Errorf("%s is %q, want %q: %w", key, got, from, world.ErrOther)
	}

	if said := as.Take(); !mentions(said, fmt.Sprintf("%s (%s → %s)", dataField(key), cmp.Or(from, "(unset)"), hacked)) {
		return fmt.Errorf("warnings %q: %w", said, world.ErrOther)
	}

	return holds(u, dataField(key), from, hacked, annaName)
}

// composed checks that the part's spec has the first version, and nothing that nobody
// composes.
func (c cluster) composed(ctx context.Context) error {
	u, err := c.part(ctx, objectKind(), "data")
	if err != nil {
		return err
	}

	data := resource.Map(u.Object, "spec", "forProvider", "manifest", "data")
	if got, more := resource.String(data, "version"), resource.String(data, "extra"); got != "v1" || more != "" {
		return fmt.Errorf("the version is %q and the extra %q, want v1 and none: %w", got, more, world.ErrOther)
	}

	return nil
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

// TestWhatIsNotAllowedDoesNotRideAlong edits a managed resource by hand, while its
// gate is closed, and while it is open.
func TestWhatIsNotAllowedDoesNotRideAlong(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Store", "handmade")
	c.play(t, []scenario.Step{c.smallStore("handmades")})

	seen := c.versions(t, "data")

	c.play(t, []scenario.Step{
		{Title: "What somebody edits by hand over what is composed is held at the closed gate", Run: func(ctx context.Context) error {
			if err := c.edit(ctx, t, "version", "v1"); err != nil {
				return err
			}

			return rests(ctx, "what was there", all(c.composed, c.shows("version", "v1", "data"), c.settled))
		}},
		{Title: "What nobody composes is held, too, as often as it is asked for", Run: func(ctx context.Context) error {
			for range 2 {
				if err := c.edit(ctx, t, "extra", ""); err != nil {
					return err
				}
			}

			return rests(ctx, "what was there", all(c.composed, c.settled))
		}},
		{Title: "It does not arrive with the next allowed change", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, storeOf("handmades", "handmade", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store", all(c.shows("size", "large", "data"), c.composed, c.settled))
		}},
		{Title: "While the gate is open an edit by hand is held as well", Run: func(ctx context.Context) error {
			return c.editWhileOpen(ctx, t)
		}},
		{Title: "The allowed change arrives", Run: func(ctx context.Context) error {
			if err := c.pause(ctx, "data", "null"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a tiny store", all(c.shows("size", "tiny", "data"), c.composed, c.settled))
		}},
	})

	for _, version := range seen() {
		if version != "v1" {
			t.Errorf("the external object had version %q", version)
		}
	}
}

// smallStore is a step that makes a small store by its own Composition.
func (c cluster) smallStore(composition string) scenario.Step {
	return scenario.Step{Title: "A store", Run: func(ctx context.Context) error {
		err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition(composition, "v1", "data")),
			c.apply(ctx, hans, storeOf(composition, c.name, "small")))
		if err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled))
	}}
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

	if err := scenario.Eventually(ctx, "an open gate", c.gateIs(v1alpha1.GateOpen)); err != nil {
		return err
	}

	if err := c.edit(ctx, t, "version", "v1"); err != nil {
		return err
	}

	return c.composed(ctx)
}

const (
	// kubectlAnna is the field manager under which anna applies by hand.
	kubectlAnna = "kubectl-anna"
	// byCrossplane stands for the one under which Crossplane applies what the store composes.
	byCrossplane = "crossplane"
)

// owners are the field managers that manage a field of the part's data, as managedFields
// say, in order.
func (c cluster) owners(ctx context.Context, key string) ([]string, error) {
	u, err := c.part(ctx, objectKind(), "data")
	if err != nil {
		return nil, err
	}

	var out []string

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, _ := e.(map[string]any)
		if _, ok := resource.Value(m, "fieldsV1", "f:spec", "f:forProvider", "f:manifest", "f:data", "f:"+key); !ok {
			continue
		}

		manager := resource.String(m, "manager")
		if strings.HasPrefix(manager, managedfields.ComposedManager) {
			manager = byCrossplane
		}

		out = append(out, manager)
	}

	slices.Sort(out)

	return out, nil
}

// owned checks who owns a field of the part's data.
func (c cluster) owned(key string, want ...string) check {
	return func(ctx context.Context) error {
		got, err := c.owners(ctx, key)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s is owned by %q, want %q: %w", key, got, want, world.ErrOther)
		}

		return err
	}
}

// applyData has anna apply some of the part's data by hand, over whoever has it, and
// returns what is stored then.
func (c cluster) applyData(ctx context.Context, as client.Client, data map[string]any) (*unstructured.Unstructured, error) {
	u, err := c.part(ctx, objectKind(), "data")
	if err != nil {
		return nil, err
	}

	out := world.Prototype(objectKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())

	if len(data) > 0 {
		out.Object["spec"] = map[string]any{"forProvider": map[string]any{"manifest": map[string]any{"data": data}}}
	}

	return out, as.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(kubectlAnna), client.ForceOwnership)
}

// TestAHeldServerSideApplyOwnsWhatItDoesNotChange applies by hand what nobody allowed.
// The API server notes who owns a field before the webhook holds its value.
func TestAHeldServerSideApplyOwnsWhatItDoesNotChange(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Store", "applied")
	c.play(t, []scenario.Step{c.smallStore("applieds")})

	// What managedFields say. Correct it here, should the API server or Crossplane differ.
	var (
		before  = []string{byCrossplane}
		over    = []string{byCrossplane, kubectlAnna} // Once Crossplane has applied it again.
		alone   = []string{kubectlAnna}               // A field that is not there.
		after   = []string{byCrossplane}
		nothing []string
	)

	seen := c.versions(t, "data")

	// apply has anna apply a value of a field, which is held.
	apply := func(ctx context.Context, key, from string) error {
		as := controller(t, annaName)

		u, err := c.applyData(ctx, as, map[string]any{key: hacked})
		if err != nil {
			return err
		}

		got, err := c.owners(ctx, key)
		t.Logf("after a held server-side apply of %s by %s, managedFields give it to %q", key, kubectlAnna, got)

		return errors.Join(err, keptAs(u, as, key, from))
	}

	c.play(t, []scenario.Step{
		{Title: "What is applied over what is composed is held, again and again, and both own the field", Run: func(ctx context.Context) error {
			if err := c.owned("version", before...)(ctx); err != nil {
				return err
			}

			for range 2 {
				if err := apply(ctx, "version", "v1"); err != nil {
					return err
				}
			}

			return rests(ctx, "what was there", all(c.composed, c.shows("version", "v1", "data"), c.settled, c.owned("version", over...)))
		}},
		{Title: "It does not arrive with the next allowed change", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, storeOf("applieds", "applied", "large")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store", all(c.shows("size", "large", "data"), c.composed, c.settled))
		}},
		{Title: "What is applied in its place, which nobody composes, is held and owned by who asked", Run: func(ctx context.Context) error {
			if err := apply(ctx, "extra", ""); err != nil {
				return err
			}

			return rests(ctx, "what was there", all(c.composed, c.settled, c.owned("version", after...), c.owned("extra", alone...)))
		}},
		{Title: "Who applies nothing any more takes nothing away", Run: func(ctx context.Context) error {
			if _, err := c.applyData(ctx, controller(t, annaName), nil); err != nil {
				return err
			}

			return rests(ctx, "what was there", all(c.composed, c.shows("version", "v1", "data"), c.settled,
				c.owned("version", after...), c.owned("extra", nothing...)))
		}},
	})

	for _, version := range seen() {
		if version != "v1" {
			t.Errorf("the external object had version %q", version)
		}
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
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: `{"v":1,"policies":["*"]}`})

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

		if _, stored := resource.Value(live.Object, "spec", "forProvider", "manifest", "data"); stored ||
			resource.Annotation(live, v1alpha1.AnnotationHeld) == "" {
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
		`{"metadata": {"annotations": {"kausality.io/desired-policies": null}}}`:                                                      false,
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
