// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// activate has the Deployments that windows wait for be that far where the scenario's are active, and
// waits until these are.
func (c cast) activate(ctx context.Context, one *policytest.Scenario) error {
	for i := range one.Upgrades {
		w := &one.Upgrades[i]
		if w.Spec.ActivateWhen == nil || w.Spec.ActivateWhen.ControllerRef == nil {
			continue
		}

		ref := w.Spec.ActivateWhen.ControllerRef

		u := deployment(ref.Namespace, ref.Name)
		if !w.Status.Active {
			if err := c.remove(ctx, c.admin, u); err != nil {
				return err
			}
		} else if err := c.advance(ctx, u, ref.MinGeneration); err != nil {
			return err
		}

		live := world.Prototype(v1alpha1.GroupVersion().WithKind(v1alpha1.KindUpgrade))
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(w), live); err != nil {
			return err
		}

		active, _, _ := unstructured.NestedBool(live.Object, "status", "active")
		if ends := w.Spec.ValidUntil.Time; active != w.Status.Active && one.Request.Now.Before(ends) {
			return fmt.Errorf("UpgradeAllowance %q is active: %t: %w", w.GetName(), active, world.ErrOther)
		}
	}

	return nil
}

// advance has a Deployment's controller be at a generation.
func (c cast) advance(ctx context.Context, u *unstructured.Unstructured, generation int64) error {
	if err := c.namespace(ctx, u.GetNamespace(), nil); err != nil {
		return err
	}

	if err := client.IgnoreAlreadyExists(c.admin.Create(ctx, u.DeepCopy())); err != nil {
		return err
	}

	return c.admin.Status().Patch(ctx, u, world.Merge(fmt.Sprintf(`{"status": {"observedGeneration": %d}}`, generation)))
}

// deployment is one that nobody runs.
func deployment(namespace, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}

	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": name, "image": "registry.example.org/" + name + ":v3"}}},
		},
	}}}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	u.SetNamespace(namespace)
	u.SetName(name)

	return u
}
