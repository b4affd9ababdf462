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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestRepairsEndBesideOthers has others want another value than Crossplane, and get it back each time: a webhook that rewrites what is
// written, as of a registry, and a controller that applies by force, as of GitOps. Then the API server refuses a repair.
func TestRepairsEndBesideOthers(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	a := newApp(t, "rivals")

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
		{Title: "A webhook has images come from a mirror", Run: func(ctx context.Context) error {
			mirrored(t, a.Client, a.name) //nolint:contextcheck // It ends with the test.

			if err := a.patched(ctx, "deployment", "/spec/template/spec/containers/0/resources/requests/cpu", `"2"`); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the repair of another field", a.asksFor("mirror.example.org/web-1", "1")); err != nil {
				return err
			}

			return a.restsAt(ctx, "deployment", a.asksFor("mirror.example.org/web-1", "1"))
		}},
		{Title: "A controller applies another value by force", Run: a.rivalled},
		{Title: "What nobody can change is told, and holds up nothing else", Run: func(ctx context.Context) error {
			u, err := a.live(ctx, "secret")
			if err != nil {
				return err
			}

			if err := a.Patch(ctx, u, world.Merge(`{"immutable": true, "stringData": {"version": "by-hand"}}`), client.FieldOwner("kubectl-patch")); err != nil {
				return err
			}

			if err := a.patched(ctx, "service", "/spec/ports/0/targetPort", "9090"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the repair of another object", func(ctx context.Context) error {
				u, err := a.live(ctx, "service")
				if err != nil {
					return err
				}

				for _, p := range resource.List(u.Object, "spec", "ports") {
					port, _ := p.(map[string]any)
					if got := fmt.Sprint(port["targetPort"]); got != "8080" {
						return fmt.Errorf("targetPort %s: %w", got, world.ErrOther)
					}
				}

				return nil
			}); err != nil {
				return err
			}

			return a.restsAt(ctx, "secret", func(ctx context.Context) error {
				u, err := a.live(ctx, "secret")
				if got, _ := u.Object["immutable"].(bool); err != nil || !got {
					return fmt.Errorf("it can be changed: %w", errors.Join(err, world.ErrOther))
				}

				return nil
			})
		}},
	})
}

// mirrored has a webhook rewrite the images of what an XR composes.
func mirrored(t *testing.T, c client.Client, xr string) {
	t.Helper()

	world.Rewrites(t, c, admissionregistrationv1.MutatingWebhook{
		Name:           xr + ".mirror.example.org",
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"crossplane.io/composite": xr}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		}},
	}, func(obj map[string]any) []map[string]any {
		const mirror = "mirror.example.org/"

		for _, e := range resource.List(obj, "spec", "template", "spec", "containers") {
			container, _ := e.(map[string]any)
			if image, _ := container["image"].(string); !strings.HasPrefix(image, mirror) {
				return []map[string]any{{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": mirror + image}}
			}
		}

		return nil
	})
}

// patched changes a field of a part by hand.
func (a app) patched(ctx context.Context, part, path, value string) error {
	u, err := a.live(ctx, part)
	if err != nil {
		return err
	}

	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "`+path+`", "value": `+value+`}]`))

	return a.Patch(ctx, u, patch, client.FieldOwner("kubectl-patch"))
}

// asksFor checks image and CPU of its Deployment's container.
func (a app) asksFor(image, cpu string) check {
	return func(ctx context.Context) error {
		u, err := a.live(ctx, "deployment")
		if err != nil {
			return err
		}

		for _, e := range resource.List(u.Object, "spec", "template", "spec", "containers") {
			container, _ := e.(map[string]any)
			if is, of := resource.String(container, "image"), resource.String(container, "resources", "requests", "cpu"); is != image || of != cpu {
				return fmt.Errorf("image %s, cpu %s: %w", is, of, world.ErrOther)
			}
		}

		return nil
	}
}

// restsAt checks that a part comes to rest: that soon nobody writes it for a while.
func (a app) restsAt(ctx context.Context, part string, is check) error {
	const quiet, most = 10 * time.Second, time.Minute

	for since, version, until := time.Now(), "", time.Now().Add(most); time.Since(since) < quiet; {
		u, err := a.live(ctx, part)
		if err != nil {
			return err
		}

		if u.GetResourceVersion() != version {
			since, version = time.Now(), u.GetResourceVersion()
		}

		if time.Now().After(until) {
			return fmt.Errorf("the %s is still written after %s: %w", part, most, world.ErrOther)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}

	return is(ctx)
}

// rivalled has a controller apply its own value of what a Deployment asks for whenever it is another one. That ends: what it applies
// while Crossplane reads and applies is overwritten before the function sees it, but not again and again.
func (a app) rivalled(ctx context.Context) error {
	const rounds, end = 40, 20

	for i := range rounds {
		u, err := a.live(ctx, "deployment")
		if err != nil {
			return err
		}

		if memory(u) != "7Mi" {
			if i >= end {
				return fmt.Errorf("it is overwritten still in round %d: %w", i, world.ErrOther)
			}

			mine := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace()},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "resources": map[string]any{"requests": map[string]any{"memory": "7Mi"}},
				}}}}},
			}}
			mine.SetGroupVersionKind(u.GroupVersionKind())

			if err := a.Apply(ctx, client.ApplyConfigurationFromUnstructured(mine), client.ForceOwnership, client.FieldOwner("argocd-controller")); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500*time.Millisecond + time.Duration(i%5)*100*time.Millisecond): // Not in step with Crossplane.
		}
	}

	return nil
}
