// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAHandDecidesNothingAboutTheOutside edits what becomes of an external object
// and which one it is.
func TestAHandDecidesNothingAboutTheOutside(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const fieldName = "metadata.annotations[" + identity.AnnotationExternalName + "]"

	v := vault{newCluster(t, "XCellar", "walled")}
	v.namespace = ""
	object := schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}

	v.play(t, []scenario.Step{
		{Title: "A cellar is made", Run: func(ctx context.Context) error {
			if err := v.applyFile(ctx, "cellars.yaml"); err != nil {
				return err
			}

			if err := v.apply(ctx, hans, `{apiVersion: shop.example.org/v1, kind: XCellar, metadata: {name: walled}, spec: {size: small}}`); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small cellar", all(v.has("size", "small"), v.settled, v.kept))
		}},
		{Title: "Its deletion policy and its external name are held", Run: func(ctx context.Context) error {
			u, err := v.part(ctx, object, "data")
			if err != nil {
				return err
			}

			name := resource.Annotation(u, identity.AnnotationExternalName)

			for edit, h := range map[string]v1alpha1.HeldChange{
				`{"spec": {"deletionPolicy": "Delete"}}`:                                             {Field: "spec.deletionPolicy", From: "Orphan", To: "Delete"},
				`{"metadata": {"annotations": {"crossplane.io/external-name": "of-somebody-else"}}}`: {Field: fieldName, From: name, To: "of-somebody-else"},
				`{"metadata": {"annotations": {"crossplane.io/external-name": null}}}`:               {Field: fieldName, From: name},
			} {
				live := u.DeepCopy()
				if err := controller(t, annaName).Patch(ctx, live, world.Merge(edit)); err != nil {
					return err
				}

				if policy, is := resource.String(live.Object, "spec", "deletionPolicy"), resource.Annotation(live, identity.AnnotationExternalName); policy != "Orphan" || is != name {
					return fmt.Errorf("%s makes of it one of policy %q and name %q: %w", edit, policy, is, world.ErrOther)
				}

				if err := holds(live, h.Field, h.From, h.To, annaName); err != nil {
					return err
				}
			}

			return nil
		}},
		{Title: "A version without management policies is refused", Run: func(ctx context.Context) error {
			u, err := v.part(ctx, object, "data")
			if err != nil {
				return err
			}

			was := resource.Strings(u.Object, "spec", "managementPolicies")
			old := u.DeepCopy()
			old.SetAPIVersion("kubernetes.crossplane.io/v1alpha1")

			for i, who := range []client.Client{controller(t, annaName), v} {
				err := who.Patch(ctx, old.DeepCopy(), world.Merge(fmt.Sprintf(`{"metadata": {"labels": {"tidy": "%d"}}}`, i)))
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "which v1alpha1 does not have: write it in v1alpha2") {
					return fmt.Errorf("a label in v1alpha1: %w", errors.Join(err, world.ErrOther))
				}
			}

			if err := v.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}

			if is := resource.Strings(u.Object, "spec", "managementPolicies"); !slices.Equal(was, is) {
				return fmt.Errorf("management policies are %v, were %v: %w", is, was, world.ErrOther)
			}

			small := v.has("size", "small")

			return errors.Join(still(ctx, small), rests(ctx, "a settled vault", all(small, v.settled)))
		}},
	})
}

// TestWhatExistedBeforeIsNotMadeAnythingElse composes a managed resource whose
// external object exists, with other values.
func TestWhatExistedBeforeIsNotMadeAnythingElse(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Store", "found")
	seen := c.versions(t, "data")

	c.play(t, []scenario.Step{
		{Title: "Somebody made a store long ago", Run: func(ctx context.Context) error {
			return c.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "found-data"},
				Data:       map[string]string{"size": "huge", "version": "v0"},
			})
		}},
		{Title: "Anna composes it anew, as she likes it", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, admin, storeComposition("founds", "v1", "data")); err != nil {
				return err
			}

			if err := c.apply(ctx, anna, storeOf("founds", "found", "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held difference", c.says("settled", "2 changes held",
				"spec.forProvider.manifest.data.size huge → small", "the external object existed before Object",
				"spec.forProvider.manifest.data.version v0 → v1")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("size", "huge", "data"), c.shows("version", "v0", "data")))
		}},
		{Title: "Hans may change its size, and not its version along with it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, storeOf("founds", "found", "large")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a held difference",
				c.says("settled", "spec.forProvider.manifest.data.size huge → large")); err != nil {
				return err
			}

			return still(ctx, all(c.shows("size", "huge", "data"), c.shows("version", "v0", "data")))
		}},
	})

	for _, version := range seen() {
		if version != "v0" {
			t.Errorf("the external object had version %q", version)
		}
	}
}
