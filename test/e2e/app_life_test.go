// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// ready checks that all of an App is ready, whoever composes it.
func (a app) ready(ctx context.Context) error {
	xr, err := a.xr(ctx)
	if err != nil {
		return err
	}

	if !resource.Ready(xr) {
		return fmt.Errorf("App %q is not ready: %w", a.name, world.ErrOther)
	}

	return nil
}

// told checks that an event of a reason says something of the App.
func (a app) told(reason string, words ...string) check {
	return func(ctx context.Context) error {
		xr, err := a.xr(ctx)
		if err != nil {
			return err
		}

		list := &eventsv1.EventList{}
		if err := a.List(ctx, list, client.InNamespace(a.namespace)); err != nil {
			return err
		}

		var notes []string

		for _, e := range list.Items {
			if e.Regarding.UID == xr.GetUID() && e.Reason == reason {
				notes = append(notes, e.Note)
			}
		}

		for _, w := range words {
			if !strings.Contains(strings.Join(notes, "\n"), w) {
				return fmt.Errorf("the events %s say %q, not %q: %w", reason, notes, w, world.ErrOther)
			}
		}

		return nil
	}
}

// uids are the identities of all parts.
func (a app) uids(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}

	for part := range a.kinds() {
		u, err := a.live(ctx, part)
		if err != nil {
			return nil, err
		}

		out[part] = string(u.GetUID())
	}

	return out, nil
}

func TestAFleetThatRunsIsTakenOverAsItIs(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const size = 5

	first := newApp(t, "fleet-0")
	fleet := make([]app, size)
	asked, uids, outside := make([]map[string]any, size), make([]map[string]string, size), make([]string, size)

	for i := range fleet {
		fleet[i] = app{first.of("App", fmt.Sprintf("fleet-%d", i))}
	}

	each := func(f func(i int, a app) error) error {
		for i, a := range fleet {
			if err := f(i, a); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}

		return nil
	}

	first.play(t, []scenario.Step{
		{Title: "It runs, composed without the function", Run: func(ctx context.Context) error {
			if err := first.apply(ctx, admin, patched("fleet", "v1")); err != nil {
				return err
			}

			if err := each(func(_ int, a app) error { return a.apply(ctx, hans, appOf("fleet", a.name, "web-1")) }); err != nil {
				return err
			}

			return each(func(i int, a app) (err error) {
				if err := scenario.Eventually(ctx, "an App that runs", all(a.runs("web-1"), a.ready)); err != nil {
					return err
				}

				if asked[i], err = a.asked(ctx); err != nil {
					return err
				}

				out, err := a.configMap(ctx, a.name+"-object")
				if err != nil {
					return err
				}

				outside[i] = out.GetResourceVersion()
				uids[i], err = a.uids(ctx)

				return err
			})
		}},
		{Title: "It is taken over without a change, and what differs is told", Run: func(ctx context.Context) error {
			if err := first.apply(ctx, admin, patched("fleet", "v1", stepKausality)); err != nil {
				return err
			}

			return each(func(i int, a app) error {
				return scenario.Eventually(ctx, "an App that is taken over", all(a.settled, a.same(asked[i], uids[i], outside[i])))
			})
		}},
		{Title: "From then on nothing changes unasked", Run: func(ctx context.Context) error {
			if err := first.apply(ctx, admin, patched("fleet", "v2", stepKausality)); err != nil {
				return err
			}

			return each(func(i int, a app) error {
				if err := scenario.Eventually(ctx, "held changes", a.says("settled, ", " held", "Deployment", "Service", "Object")); err != nil {
					return err
				}

				return a.same(asked[i], uids[i], outside[i])(ctx)
			})
		}},
	})
}

// same checks that nothing was made anew, changed or called outside. Of a managed
// resource its gate is closed now.
func (a app) same(asked map[string]any, uids map[string]string, outside string) check {
	return func(ctx context.Context) error {
		is, err := a.uids(ctx)
		if err != nil {
			return err
		}

		if !maps.Equal(is, uids) {
			return fmt.Errorf("%v were made anew, there were %v: %w", is, uids, world.ErrOther)
		}

		was := maps.Clone(asked)
		managed, _ := was["object"].(map[string]any)
		object := (&unstructured.Unstructured{Object: managed}).DeepCopy()

		live, err := a.live(ctx, "object")
		if err != nil {
			return err
		}

		policies, _, _ := unstructured.NestedSlice(live.Object, "spec", "managementPolicies")
		if err := unstructured.SetNestedSlice(object.Object, policies, "spec", "managementPolicies"); err != nil {
			return err
		}

		was["object"] = object.Object

		out, err := a.configMap(ctx, a.name+"-object")
		if err == nil && out.GetResourceVersion() != outside {
			err = fmt.Errorf("the external object was written: %w", world.ErrOther)
		}

		if err != nil {
			return err
		}

		return a.unchanged(was)(ctx)
	}
}

func TestAFleetIsTakenOverWithWhatDiffersListed(t *testing.T) {
	t.Parallel()

	a := newApp(t, "differs")
	ctx := t.Context()

	if err := a.apply(ctx, admin, templated("differs", "v1")); err != nil {
		t.Fatal(err)
	}

	if err := a.apply(ctx, hans, appOf("differs", "differs", "web-1")); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "an App that runs", all(a.runs("web-1"), a.ready)); err != nil {
		t.Fatal(err)
	}

	outside, err := a.configMap(ctx, "differs-object")
	if err != nil {
		t.Fatal(err)
	}

	if err := a.apply(ctx, admin, templated("differs", "v2", stepKausality)); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "what differs is told, and held where it would go out", all(
		a.told("KausalityBaseline", "Deployment", "Service"),
		a.says(" held", "spec.forProvider.manifest.data.version v1 → v2"),
	)); err != nil {
		t.Fatal(err, a.dump(ctx))
	}

	now, err := a.configMap(ctx, "differs-object")
	if err != nil || now.GetResourceVersion() != outside.GetResourceVersion() {
		t.Errorf("the external object was written (%v)", err)
	}
}

// appStatus is a status that is never stored as it is wanted: elements get a
// default, and a time moves on.
const appStatus = `
apiVersion: shop.example.org/v1
kind: App
status:
  image: IMAGE
  at: "{{ now }}"
  endpoints: [{host: a}, {host: b, port: 81}]`

func TestAStatusThatIsNeverStoredAsWantedKeepsNothing(t *testing.T) {
	world.Long(t)
	t.Parallel()

	a := newApp(t, "reports")
	ctx := t.Context()
	parts := maps.Clone(appParts("v1"))
	parts["status"] = appStatus

	if err := a.apply(ctx, admin, templatedWith(parts)("reports", "v1", stepKausality)); err != nil {
		t.Fatal(err)
	}

	for _, image := range []string{"web-1", "web-2"} {
		if err := a.apply(ctx, hans, appOf("reports", "reports", image)); err != nil {
			t.Fatal(err)
		}

		if err := scenario.Eventually(ctx, "an App that settles", all(a.runs(image), a.shows("image", image, "object"), a.settled, a.spent)); err != nil {
			t.Fatal(err, a.dump(ctx))
		}
	}
}

func TestARolloutOfWhatIsComposedIsUndone(t *testing.T) {
	world.Long(t)
	t.Parallel()

	a := newApp(t, "undone")
	ctx := t.Context()

	if err := a.apply(ctx, admin, patched("undone", "v1", stepHolds)); err != nil {
		t.Fatal(err)
	}

	for _, image := range []string{"web-1", "web-2"} {
		if err := a.apply(ctx, hans, appOf("undone", "undone", image)); err != nil {
			t.Fatal(err)
		}

		if err := scenario.Eventually(ctx, "an App that settles", all(a.runs(image), a.settled, a.spent)); err != nil {
			t.Fatal(err, a.dump(ctx))
		}
	}

	u, err := a.live(ctx, "deployment")
	if err != nil {
		t.Fatal(err)
	}

	was := u.GetAnnotations()[v1alpha1.AnnotationTrace]

	d := deployment{cluster: a.cluster, namespace: namespace, name: u.GetName()}

	// It is undone, and seen; what was noted stays. Crossplane may apply what it
	// read before, and overwrite it.
	undo := func(ctx context.Context) error {
		u, err := a.live(ctx, "deployment")
		if err != nil || firstImage(u) == "web-1" {
			return err
		}

		if out, err := d.kubectl(ctx, admin, "rollout", "undo", "deployment/"+u.GetName()); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}

		return nil
	}
	undone := func(ctx context.Context) error {
		u, err := a.live(ctx, "deployment")
		if err != nil {
			return err
		}

		if got := firstImage(u); got != "web-1" {
			return fmt.Errorf("its image is %q: %w", got, world.ErrOther)
		}

		if u.GetAnnotations()[v1alpha1.AnnotationTrace] != was {
			return fmt.Errorf("its trace is another one: %w", world.ErrOther)
		}

		return nil
	}
	if err := scenario.Eventually(ctx, "an undone rollout", all(undo, undone, a.says(" held", " of Deployment"))); err != nil {
		t.Fatal(err, a.dump(ctx))
	}

	if err := still(ctx, undone); err != nil {
		t.Fatal(err, a.dump(ctx))
	}

	// What is asked for next arrives.
	if err := a.apply(ctx, hans, appOf("undone", "undone", "web-3")); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a new image", all(a.runs("web-3"), a.settled, a.spent)); err != nil {
		t.Fatal(err, a.dump(ctx))
	}
}
