// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestADeletionPolicyThatOrphansKeepsTheExternalObject allows to delete what is
// outside, too: an explicit Delete would win over the deletion policy.
func TestADeletionPolicyThatOrphansKeepsTheExternalObject(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	v := vault{newCluster(t, "XCellar", "deep")}
	v.namespace = ""
	object := schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}

	var (
		data *unstructured.Unstructured
		seen *sets
	)

	v.play(t, []scenario.Step{
		{Title: "A cellar is made", Run: func(ctx context.Context) error {
			if err := v.applyFile(ctx, "cellars.yaml"); err != nil {
				return err
			}

			if err := v.apply(ctx, hans, `{apiVersion: shop.example.org/v1, kind: XCellar, metadata: {name: deep}, spec: {size: small}}`); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small cellar", all(v.has("size", "small"), v.settled, v.kept))
		}},
		{Title: "It goes, with its managed resource, without ever opening the gate", Run: func(ctx context.Context) error {
			parts, err := v.parts(ctx, object)
			if err != nil {
				return err
			}

			data = parts["data"]

			if seen, err = v.follow(t, data); err != nil { //nolint:contextcheck // It goes on until the test ends.
				return err
			}

			xr, err := v.xr(ctx)
			if err != nil {
				return err
			}

			if err := v.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the cellar", all(v.ended, func(ctx context.Context) error {
				err := v.Get(ctx, client.ObjectKeyFromObject(data), data.DeepCopy())
				if err == nil {
					err = world.ErrOther
				}

				return client.IgnoreNotFound(err)
			}))
		}},
		{Title: "What it stood for stays", Run: func(ctx context.Context) error {
			if err := still(ctx, all(v.outside("data"), v.has("size", "small"))); err != nil {
				return err
			}

			if got := resource.String(data.Object, "spec", "deletionPolicy"); got != "Orphan" {
				t.Errorf("The deletion policy is %q", got)
			}

			return seen.were(setClosed)
		}},
	})
}

// TestADeletionPolicyThatIsHeldKeepsTheExternalObject updates the Composition from one deletion policy to the other, which nobody allows,
// and has who may delete the XR.
func TestADeletionPolicyThatIsHeldKeepsTheExternalObject(t *testing.T) {
	t.Parallel()

	for name, policies := range map[string][2]string{"spares": {"Delete", "Orphan"}, "spoils": {"Orphan", "Delete"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kind := "XCellar" + name
			v := vault{newCluster(t, kind, name)}
			v.namespace = ""

			compose := func(ctx context.Context, policy string) error {
				text, err := os.ReadFile(filepath.Join("testdata", "cellars.yaml"))
				if err != nil {
					return err
				}

				return v.apply(ctx, admin, strings.NewReplacer("XCellar", kind, "xcellars", "xcellar"+name+"s", "{name: cellars}", "{name: cellars-"+name+"}",
					"cellar-deletion", "cellar-deletion-"+name, "deletionPolicy: Orphan", "deletionPolicy: "+policy).Replace(string(text)))
			}

			var data *unstructured.Unstructured

			v.play(t, []scenario.Step{
				{Title: "A cellar", Run: func(ctx context.Context) error {
					if err := errors.Join(compose(ctx, policies[0]), v.apply(ctx, hans,
						`{apiVersion: shop.example.org/v1, kind: `+kind+`, metadata: {name: `+name+`}, spec: {size: small}}`)); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "a small cellar", all(v.has("size", "small"), v.settled, v.kept))
				}},
				{Title: "Another policy is held", Run: func(ctx context.Context) error {
					if err := compose(ctx, policies[1]); err != nil {
						return err
					}

					return scenario.Eventually(ctx, "a hold", v.says("spec.deletionPolicy "+policies[0]+" → "+policies[1]))
				}},
				{Title: "The external object stays", Run: func(ctx context.Context) error {
					var err error
					if data, err = v.part(ctx, oldObject(), "data"); err != nil {
						return err
					}

					xr, err := v.xr(ctx)
					if err != nil {
						return err
					}

					if err := v.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
						return err
					}

					if err := scenario.Eventually(ctx, "the end of the cellar", all(v.ended, v.isGone(data))); err != nil {
						return err
					}

					return still(ctx, all(v.outside("data"), v.has("size", "small")))
				}},
			})
		})
	}
}
