// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Applier applies webhook configurations and guards.
type Applier struct {
	Client  client.Client
	Hooks   admission.Options
	Webhook *Webhook

	mu sync.Mutex
	// since is when the guards were made that are there, by name.
	since map[string]time.Time
}

// GuardedSince is when the guard of a name was made; false where it is not known to be there.
func (a *Applier) GuardedSince(name string) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	since, ok := a.since[name]

	return since, ok
}

// note remembers when a guard was made, and that one which is gone was not.
func (a *Applier) note(name string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if since.IsZero() {
		delete(a.since, name)

		return
	}

	if a.since == nil {
		a.since = map[string]time.Time{}
	}

	a.since[name] = since
}

// builder returns the options of webhook configurations and guards, with the CA that
// there is now.
func (a *Applier) builder() admission.Options {
	out := a.Hooks
	if w := a.Webhook; w != nil {
		out.Server = admission.Server{
			URL: w.URL, Service: w.Service, Port: w.Port,
			MutatePath: w.MutatePath, EnforcePath: w.EnforcePath, ValidatePath: w.ValidatePath, ApprovePath: w.ApprovePath, UsagePath: w.UsagePath,
			CABundle: w.Trust.Bundle(), InjectCAFrom: w.InjectCAFrom, Manager: w.Manager,
		}
	}

	return out
}

// ApplyWebhooks applies the webhook configurations for what policies and
// Enforcements are about, and for what shows which resource uses which configuration.
func (a *Applier) ApplyWebhooks(
	ctx context.Context, governed []admission.GovernedKind, enforced []admission.Enforced, usages []kind.Served,
) error {
	if a.Webhook == nil {
		return nil
	}

	mutating, validating, err := a.builder().Configurations(governed, enforced, usages)
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
	var since time.Time

	for _, obj := range []client.Object{g.Policy, g.Binding} {
		if g.Empty() {
			if err := client.IgnoreNotFound(a.Client.Delete(ctx, obj)); err != nil {
				return err
			}

			continue
		}

		made, err := a.applyMade(ctx, obj)
		if err != nil {
			return err
		}

		if made.After(since) {
			since = made
		}
	}

	a.note(g.Policy.GetName(), since)

	return nil
}

// apply makes an object as given, by server-side apply.
func (a *Applier) apply(ctx context.Context, obj client.Object) error {
	_, err := a.applyMade(ctx, obj)

	return err
}

// applyMade is the same, and says when the object was made.
func (a *Applier) applyMade(ctx context.Context, obj client.Object) (time.Time, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}

	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")

	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(object.FieldManager))
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return u.GetCreationTimestamp().Time, nil // As the API server has answered.
}
