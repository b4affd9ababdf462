// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestADeletionIsNotCalledOffByWhatWasComposedBefore deletes an XR while
// Crossplane, which is dead for that, may be composing for it: its last write
// comes later, and says that the managed resource is to stay.
func TestADeletionIsNotCalledOffByWhatWasComposedBefore(t *testing.T) {
	world.Long(t)

	impatient(t)
	ctx := t.Context()
	hans, crossplane := as(t, "hans"), as(t, "crossplane")

	// 1. A stand, and its managed resource, are at rest.
	stand, object := newStand(t, "north")

	// 2. While Crossplane is dead hans deletes it.
	p := running.Process("crossplane")
	if err := errors.Join(p.Kill(), hans.Delete(ctx, stand)); err != nil {
		t.Fatal(err)
	}

	// 3. Nothing is asked to go that Crossplane may say is to stay.
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && !t.Failed(); time.Sleep(100 * time.Millisecond) {
		live := object.DeepCopy()
		if err := hans.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}

		if carries(live, allowance.External) {
			t.Error("the managed resource may go already")
		}
	}

	// 4. What it was about to write, as it had seen it, and its return.
	err := crossplane.Patch(ctx, object.DeepCopy(), world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`,
		v1alpha1.AnnotationAllowances, resource.Annotation(object, v1alpha1.AnnotationAllowances))))
	if err := errors.Join(err, p.Restart(ctx)); err != nil {
		t.Fatal(err)
	}

	// 5. All is deleted.
	for _, u := range []*unstructured.Unstructured{stand, object, named("v1", "ConfigMap", stand.GetName())} {
		if err := scenario.Eventually(ctx, "the end of "+u.GetKind(), func(ctx context.Context) error {
			err := hans.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
			if err == nil {
				err = world.ErrOther
			}

			return client.IgnoreNotFound(err)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// newStand makes an XR as hans, and returns it and what it is made of once they
// are at rest.
func newStand(t *testing.T, name string) (stand, object *unstructured.Unstructured) {
	t.Helper()

	text, err := os.ReadFile("testdata/stands.yaml")
	if err != nil {
		t.Fatal(err)
	}

	if err := apply(t, string(text)); err != nil {
		t.Fatal(err)
	}

	hans := as(t, "hans")
	stand = named("shop.example.org/v1", "Stand", name)
	stand.Object["spec"] = map[string]any{"size": "small"}

	if err := scenario.Eventually(t.Context(), "a new stand", func(ctx context.Context) error {
		return hans.Create(ctx, stand)
	}); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(t.Context(), "a stand at rest", func(ctx context.Context) (err error) {
		object, err = atRest(ctx, hans, stand)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	if err := age(t.Context(), hans, object); err != nil {
		t.Fatal(err)
	}

	return stand, object
}

func named(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)

	return u
}

// atRest returns what an XR of one managed resource is made of, once it is
// settled and kept.
func atRest(ctx context.Context, c client.Client, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := u.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return nil, err
	}

	refs := resource.Composed(live)
	if len(refs) == 0 || !settled(live) || len(live.GetFinalizers()) < 2 {
		return nil, fmt.Errorf("refs %v, finalizers %v, settled %t: %w", refs, live.GetFinalizers(), settled(live), world.ErrOther)
	}

	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(refs[0].GroupVersionKind())

	return object, c.Get(ctx, client.ObjectKey{Namespace: refs[0].Namespace, Name: refs[0].Name}, object)
}

// as returns a client of hans, or of Crossplane.
func as(t *testing.T, user string) client.Client {
	t.Helper()

	config := running.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + stack.CrossplaneNamespace + ":crossplane",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}

	if user != "crossplane" {
		var err error
		if config, err = running.ConfigFor(user); err != nil {
			t.Fatal(err)
		}
	}

	return world.Connect(t, config)
}
