// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// desk is what a desk is asked to be.
func (c cluster) desk(ctx context.Context, team, account, size string) error {
	return c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: shop.example.org/v1, kind: Desk, metadata: {name: %s, namespace: default},
		spec: {team: %s, account: %s, size: %s}}`, c.name, team, account, size))
}

// noOutside checks that no external object of a name is there.
func (c cluster) noOutside(name string) check {
	return func(ctx context.Context) error {
		if _, err := c.configMap(ctx, c.name+"-"+name); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("external object %q is there (%w)", name, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// gateWithout checks the management policies of the part.
func (c cluster) gateWithout(actions ...string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		for _, action := range actions {
			if slices.Contains(policies(u), action) {
				return fmt.Errorf("management policies %v: %w", policies(u), world.ErrOther)
			}
		}

		return nil
	}
}

// config checks which ProviderConfig the part refers to.
func (c cluster) config(want string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, objectKind(), "data")
		if err != nil {
			return err
		}

		if got := resource.String(u.Object, "spec", "providerConfigRef", "name"); got != want {
			return fmt.Errorf("the provider config is %q: %w", got, world.ErrOther)
		}

		return nil
	}
}

// leftBehind checks that a record of what stays outside names an external object.
func (c cluster) leftBehind(name string) check {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})

		if err := c.List(ctx, list, client.InNamespace(stack.KausalityNamespace), client.HasLabels{orphan.Label}); err != nil {
			return err
		}

		for i := range list.Items {
			raw, err := base64.StdEncoding.DecodeString(resource.String(list.Items[i].Object, "data", "manifest.yaml"))
			if err != nil {
				return err
			}

			if strings.Contains(string(raw), "name: "+c.name+"-"+name+"\n") {
				return nil
			}
		}

		return fmt.Errorf("no record names %s-%s: %w", c.name, name, world.ErrOther)
	}
}

// TestAnotherExternalObjectIsAskedForAsSuch changes by which name, and in which account, a managed resource stands for what.
func TestAnotherExternalObjectIsAskedForAsSuch(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := newCluster(t, "Desk", "hers")
	pending := pendingsOf(t, "shop.example.org/v1", "Desk", namespace, c.name)

	c.play(t, []scenario.Step{
		{Title: "A desk", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "desks.yaml"); err != nil {
				return err
			}

			if err := c.desk(ctx, "red", "default", "small"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a small red desk", all(c.outsideSize("red", "small"), c.gateIs(v1alpha1.GateClosed), c.settled))
		}},
		{Title: "A field whose policy gives Delete, too", Run: func(ctx context.Context) error {
			if err := c.desk(ctx, "red", "default", "large"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a large desk", all(c.outsideSize("red", "large"), c.gateIs(v1alpha1.GateClosed), c.settled)); err != nil {
				return err
			}

			return rests(ctx, "a gate that is closed", c.gateWithout("Update", "Delete"))
		}},
		{Title: "Another name by a policy that gives Update", Run: func(ctx context.Context) error {
			if err := c.desk(ctx, "blue", "default", "large"); err != nil {
				return err
			}

			if err := rests(ctx, "a red desk", all(c.outside("red"), c.noOutside("blue"),
				c.says("it would orphan ConfigMap default/hers-red (provider config ClusterProviderConfig/default)"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list of what would be destroyed", pending.lists([]string{hansName},
				held{kind: "Object", field: "spec.forProvider.manifest.metadata.name", destroys: true}))
		}},
		{Title: "Another account by a policy that gives Update", Run: func(ctx context.Context) error {
			if err := c.desk(ctx, "red", "elsewhere", "large"); err != nil {
				return err
			}

			return rests(ctx, "a desk in its account", all(c.outside("red"), c.noOutside("blue"), c.config("default"),
				c.says("spec.providerConfigRef.name default → elsewhere", "would orphan ConfigMap default/hers-red")))
		}},
		{Title: "Another name by a policy that gives Create and Delete", Run: func(ctx context.Context) error {
			text, err := os.ReadFile(filepath.Join("testdata", "desks.yaml"))
			if err != nil {
				return err
			}

			if err := c.apply(ctx, admin, strings.ReplaceAll(string(text), "mutations: [Update]", "mutations: [Create, Delete]")); err != nil {
				return err
			}

			if err := c.desk(ctx, "red", "default", "large"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "nothing held", c.settled); err != nil {
				return err
			}

			if err := c.desk(ctx, "green", "default", "large"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a green desk, and a record of the red one", all(c.outsideSize("green", "large"), c.outside("red"),
				c.gateIs(v1alpha1.GateClosed), c.settled, c.leftBehind("red"), c.heard(string(v1alpha1.EventReasonExternalResourceOrphaned), "hers-red", "is orphaned")))
		}},
		{Title: "The end of the desk", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "no green desk, and the red one", all(c.ended, c.noOutside("green"), c.outside("red")))
		}},
	})
}

// outsideSize checks the size of an external object.
func (c cluster) outsideSize(name, size string) check {
	return func(ctx context.Context) error {
		u, err := c.configMap(ctx, c.name+"-"+name)
		if err != nil {
			return err
		}

		if got := fmt.Sprint(u.Object["data"]); got != "map[size:"+size+"]" {
			return fmt.Errorf("%q is %s outside: %w", name, got, world.ErrOther)
		}

		return nil
	}
}
