// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Applier applies webhook configurations and guards.
type Applier struct {
	Client  client.Client
	Hooks   admission.Options
	Webhook *Webhook
}

// builder returns the options of webhook configurations and guards, with the CA that
// there is now.
func (a *Applier) builder() admission.Options {
	out := a.Hooks
	if w := a.Webhook; w != nil {
		out.Server = admission.Server{
			URL: w.URL, Service: w.Service, Port: w.Port, MutatePath: w.MutatePath, EnforcePath: w.EnforcePath, ValidatePath: w.ValidatePath,
			CABundle: w.Trust.Bundle(), InjectCAFrom: w.InjectCAFrom, Manager: w.Manager,
		}
	}

	return out
}

// ApplyWebhooks applies the webhook configurations for what policies and
// Enforcements are about.
func (a *Applier) ApplyWebhooks(ctx context.Context, governed []admission.GovernedKind, enforced []admission.Enforced) error {
	if a.Webhook == nil {
		return nil
	}

	mutating, validating, err := a.builder().Configurations(governed, enforced)
	if err != nil {
		return err
	}

	if err := a.apply(ctx, mutating); err != nil {
		return err
	}

	return a.apply(ctx, validating)
}

// ApplyGuards applies guards with their bindings; one without kinds is deleted. One
// that cannot be applied prevents no other from being applied.
func (a *Applier) ApplyGuards(ctx context.Context, list []admission.Guard) error {
	errs := make([]error, 0, len(list))

	for _, g := range list {
		if err := a.applyGuard(ctx, g); err != nil {
			errs = append(errs, fmt.Errorf("cannot keep guard %q: %w", g.Policy.GetName(), err))
		}
	}

	return errors.Join(errs...)
}

func (a *Applier) applyGuard(ctx context.Context, g admission.Guard) error {
	for _, obj := range []client.Object{g.Policy, g.Binding} {
		if g.Empty() {
			if err := client.IgnoreNotFound(a.Client.Delete(ctx, obj)); err != nil {
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
func (a *Applier) apply(ctx context.Context, obj client.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}

	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")

	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(object.FieldManager))
	if err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
