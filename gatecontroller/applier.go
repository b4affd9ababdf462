// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applier applies webhook configurations and guards.
type applier struct {
	client  client.Client
	hooks   hooks
	webhook *Webhook
}

// builder returns the options of webhook configurations and guards, with the CA that
// there is now.
func (a *applier) builder() hooks {
	out := a.hooks
	if w := a.webhook; w != nil {
		out.server = server{
			URL: w.URL, Service: w.Service, Port: w.Port, MutatePath: w.MutatePath, EnforcePath: w.EnforcePath, ValidatePath: w.ValidatePath,
			CABundle: w.Trust.Bundle(), InjectCAFrom: w.InjectCAFrom, Keeper: w.Keeper,
		}
	}

	return out
}

// applyWebhooks applies the webhook configurations for what policies and
// Enforcements are about.
func (a *applier) applyWebhooks(ctx context.Context, subjects []subject, enforced []enforced) error {
	if a.webhook == nil {
		return nil
	}

	mutating, validating, err := a.builder().configurations(subjects, enforced)
	if err != nil {
		return err
	}

	if err := a.apply(ctx, mutating); err != nil {
		return err
	}

	return a.apply(ctx, validating)
}

// applyGuards applies guards with their bindings; one without kinds is deleted. One
// that cannot be applied keeps no other from being applied.
func (a *applier) applyGuards(ctx context.Context, list []guardPair) error {
	errs := make([]error, 0, len(list))

	for _, g := range list {
		if err := a.applyGuard(ctx, g); err != nil {
			errs = append(errs, fmt.Errorf("cannot keep guard %q: %w", g.policy.GetName(), err))
		}
	}

	return errors.Join(errs...)
}

func (a *applier) applyGuard(ctx context.Context, g guardPair) error {
	for _, obj := range []client.Object{g.policy, g.binding} {
		if g.empty() {
			if err := client.IgnoreNotFound(a.client.Delete(ctx, obj)); err != nil {
				return err
			}

			continue
		}

		if err := a.apply(ctx, obj); err != nil {
			return err
		}
	}

	return nil
}

// apply makes an object as given, by server-side apply.
func (a *applier) apply(ctx context.Context, obj client.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}

	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")

	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(ParentManager))
	if err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
