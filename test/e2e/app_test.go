// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func appOf(composition, name, image string) string {
	return fmt.Sprintf(`
apiVersion: shop.example.org/v1
kind: App
metadata: {name: %s, namespace: default}
spec: {image: %q, crossplane: {compositionRef: {name: %s}}}
`, name, image, composition)
}

// app is an App and what it composes.
type app struct{ cluster }

func newApp(t *testing.T, name string) app {
	t.Helper()

	a := app{newCluster(t, "App", name)}

	// Policies about Deployments of another namespace have the manager keep up annotations of all.
	for _, file := range []string{"apps.yaml", "rollout.yaml"} {
		if err := a.applyFile(t.Context(), file); err != nil {
			t.Fatal(err)
		}
	}

	return a
}

// settled checks that it is, and that the manager has written what it keeps up of its Deployment.
func (a app) settled(ctx context.Context) error {
	u, err := a.live(ctx, "deployment")
	if err == nil && !fixture.Initialized(u) {
		err = fmt.Errorf("the Deployment is not recorded to be initialized: %w", world.ErrOther)
	}

	return errors.Join(err, a.cluster.settled(ctx))
}

// kinds are those of what it composes.
func (app) kinds() map[string]schema.GroupVersionKind {
	return map[string]schema.GroupVersionKind{
		"deployment": {Group: "apps", Version: "v1", Kind: "Deployment"},
		"service":    {Version: "v1", Kind: "Service"},
		"secret":     {Version: "v1", Kind: "Secret"},
		"object":     objectKind(),
	}
}

// live reads a part of it.
func (a app) live(ctx context.Context, part string) (*unstructured.Unstructured, error) {
	return a.part(ctx, a.kinds()[part], part)
}

// asked is what is gated of all of it: all but metadata and status.
func (a app) asked(ctx context.Context) (map[string]any, error) {
	out := map[string]any{}

	for part := range a.kinds() {
		u, err := a.live(ctx, part)
		if err != nil {
			return nil, err
		}

		for _, key := range []string{"metadata", "status"} {
			delete(u.Object, key)
		}

		out[part] = u.Object
	}

	return out, nil
}

// unchanged checks that what is gated is as it was.
func (a app) unchanged(was map[string]any) check {
	return func(ctx context.Context) error {
		is, err := a.asked(ctx)
		if err != nil {
			return err
		}

		if diff := cmp.Diff(was, is); diff != "" {
			return fmt.Errorf("%w, -was, +is:\n%s", world.ErrOther, diff)
		}

		return nil
	}
}

// written checks that nobody writes parts other than the managed resource: that
// the resource version is as it was.
func (a app) unwritten(ctx context.Context) (check, error) {
	versions := map[string]string{}

	for part := range a.kinds() {
		u, err := a.live(ctx, part)
		if err != nil {
			return nil, err
		}

		versions[part] = u.GetResourceVersion()
	}

	return func(ctx context.Context) error {
		for part, was := range versions {
			u, err := a.live(ctx, part)
			if err != nil {
				return err
			}

			if u.GetResourceVersion() != was {
				return fmt.Errorf("%s was written: %w", part, world.ErrOther)
			}
		}

		return nil
	}, nil
}

// firstImage is what a Deployment's first container runs.
func firstImage(u *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, e := range containers {
		m, _ := e.(map[string]any)

		return resource.String(m, "image")
	}

	return ""
}

// runs checks that an image runs everywhere.
func (a app) runs(image string) check {
	return func(ctx context.Context) error {
		got := map[string]string{}

		for part, path := range map[string][]string{"deployment": nil, "service": {"spec", "selector", "image"}, "secret": {"data", "image"}} {
			u, err := a.live(ctx, part)
			if err != nil {
				return err
			}

			if got[part] = resource.String(u.Object, path...); part == "deployment" {
				got[part] = firstImage(u)
			}
		}

		secret, err := base64.StdEncoding.DecodeString(got["secret"])
		got["secret"] = string(secret)

		for part, has := range got {
			if has != image {
				return fmt.Errorf("image of the %s is %q, want %q (%w)", part, has, image, errors.Join(err, world.ErrOther))
			}
		}

		return nil
	}
}

// nudge has Crossplane read the App: something of no account changes.
func (a app) nudge(ctx context.Context, what string) error {
	xr, err := a.xr(ctx)
	if err != nil {
		return err
	}

	return a.Patch(ctx, xr, world.Merge(`{"metadata": {"annotations": {"nudge": "`+what+`"}}}`))
}

// quiet checks that the App stays as it is while Crossplane reads it.
func (a app) quiet(ctx context.Context) error {
	// A pass that reads what was may still be under way.
	if err := rests(ctx, "a settled App", a.settled); err != nil {
		return err
	}

	ok, err := a.unwritten(ctx)
	if err != nil {
		return err
	}

	for _, what := range []string{"once", "twice", "thrice"} {
		if err := a.nudge(ctx, what); err != nil {
			return err
		}

		if err := errors.Join(still(ctx, ok), rests(ctx, "a settled App", all(ok, a.settled))); err != nil {
			return err
		}
	}

	return nil
}

// generation checks a Deployment's: it rises with each write, of an annotation
// too.
func (a app) generation(want int64) check {
	return func(ctx context.Context) error {
		u, err := a.live(ctx, "deployment")
		if err == nil && u.GetGeneration() != want {
			err = fmt.Errorf("the Deployment's generation is %d, want %d: %w", u.GetGeneration(), want, world.ErrOther)
		}

		return err
	}
}

// edits are changes of each part that is not allowed.
func edits() map[string]client.Patch {
	return map[string]client.Patch{
		"deployment": client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/ports/0/containerPort", "value": 81}]`)),
		"service":    client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8081}]`)),
		"secret":     world.Merge(`{"stringData": {"version": "by hand"}}`),
	}
}

// edited edits each part by hand, looks that this is seen and let be, and takes
// it back.
func (a app) edited(ctx context.Context) error {
	for part, patch := range edits() {
		was, err := a.live(ctx, part)
		if err != nil {
			return err
		}

		if err := scenario.Eventually(ctx, "an edit of the "+part+" that is seen", a.edit(part, was, patch)); err != nil {
			return err
		}

		now, err := a.asked(ctx)
		if err != nil {
			return err
		}

		// What it says may be of what Crossplane read before, for a moment.
		if err := still(ctx, a.unchanged(now)); err != nil {
			return fmt.Errorf("edit of the %s: %w", part, err)
		}

		if err := scenario.Eventually(ctx, "an edit of the "+part+" that is still seen", a.says("held", " of "+was.GetKind())); err != nil {
			return err
		}

		if err := scenario.Eventually(ctx, "an edit of the "+part+" that is taken back", all(a.takeBack(part, was), a.settled)); err != nil {
			return err
		}
	}

	return nil
}

// edit edits a part, and checks that this is seen. Crossplane may apply what it
// read before, and overwrite the edit: then it is made again.
func (a app) edit(part string, was *unstructured.Unstructured, patch client.Patch) check {
	var edited *unstructured.Unstructured

	return func(ctx context.Context) error {
		u, err := a.live(ctx, part)
		if err != nil {
			return err
		}

		if edited != nil && cmp.Equal(content(u), content(edited)) {
			return a.says("held", " of "+u.GetKind())(ctx)
		}

		if err := a.takeBack(part, was)(ctx); err != nil {
			return err
		}

		if err := a.Patch(ctx, u, patch, client.FieldOwner("kubectl-patch")); err != nil {
			return fmt.Errorf("cannot edit the %s: %w", part, err)
		}

		edited = u

		return fmt.Errorf("the %s was edited just now: %w", part, world.ErrOther)
	}
}

// takeBack gives a part the content that it had.
func (a app) takeBack(part string, was *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		u, err := a.live(ctx, part)
		if err != nil || cmp.Equal(content(u), content(was)) {
			return err
		}

		maps.Copy(u.Object, content(was))

		if err := a.Update(ctx, u, client.FieldOwner("kubectl-patch")); err != nil {
			return fmt.Errorf("cannot take back the edit of the %s: %w", part, err)
		}

		return nil
	}
}

// content is what people edit of a part.
func content(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}

	for _, key := range []string{"spec", "data"} {
		if v, ok := u.Object[key]; ok {
			out[key] = v
		}
	}

	return out
}

func TestAnAppOfOrdinaryKindsSettlesAndIsKept(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	a := newApp(t, "patched")
	a.play(t, appSteps(a, a.name, patched))
}

func TestAnAppOfTemplatesSettlesAndIsKept(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	a := newApp(t, "templated")
	a.play(t, appSteps(a, a.name, templated))
}

func appSteps(a app, name string, composition appComposition) []scenario.Step {
	var was map[string]any

	compose := func(ctx context.Context, version string) error {
		return a.apply(ctx, admin, composition(name, version, stepHolds))
	}

	return []scenario.Step{
		{Title: "It settles, and nothing is written while nothing changes", Run: func(ctx context.Context) error {
			if err := compose(ctx, "v1"); err != nil {
				return err
			}

			if err := a.apply(ctx, hans, appOf(name, name, "web-1")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "an App", all(a.runs("web-1"), a.shows("image", "web-1", "object"), a.settled, a.spent)); err != nil {
				return err
			}

			if err := a.quiet(ctx); err != nil {
				return err
			}

			return a.generation(1)(ctx)
		}},
		{Title: "A new version of the Composition is held, of each kind", Run: func(ctx context.Context) (err error) {
			if was, err = a.asked(ctx); err != nil {
				return err
			}

			if err := compose(ctx, "v2"); err != nil {
				return err
			}

			return all(func(ctx context.Context) error {
				return scenario.Eventually(ctx, "held changes", a.says("settled, ", " held", "Deployment", "Secret", "Service", "Object"))
			}, func(ctx context.Context) error { return still(ctx, a.unchanged(was)) })(ctx)
		}},
		{Title: "Taken back it is no change", Run: func(ctx context.Context) error {
			if err := compose(ctx, "v1"); err != nil {
				return err
			}

			return all(func(ctx context.Context) error {
				return scenario.Eventually(ctx, "nothing held", a.settled)
			}, a.unchanged(was), a.generation(3))(ctx) // That it is held was recorded, and is no longer.
		}},
		{Title: "Edits by hand are seen, and are no change once they are taken back", Run: a.edited},
		{Title: "What is asked for arrives, once", Run: func(ctx context.Context) error {
			if err := a.apply(ctx, hans, appOf(name, name, "web-2")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a new image", all(a.runs("web-2"), a.shows("image", "web-2", "object"), a.settled, a.spent)); err != nil {
				return err
			}

			return a.quiet(ctx)
		}},
	}
}
