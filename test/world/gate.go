// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Closed checks that the gates of resources are closed, and that their external
// objects have a size.
func (w *World) Closed(size string, list ...*unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, u := range list {
			rec, live, err := w.Record(ctx, u)
			if err != nil {
				return err
			}

			if got := resource.String(live.Object, "status", "atProvider", "size"); rec.State != v1alpha1.GateClosed || got != size {
				return fmt.Errorf("%s: gate %s, %q outside: %w", u.GetName(), rec.State, got, ErrOther)
			}
		}

		return nil
	}
}

// Open checks that the gates of resources are open.
func (w *World) Open(list ...*unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, u := range list {
			rec, _, err := w.Record(ctx, u)
			if err != nil {
				return err
			}

			if rec.State != v1alpha1.GateOpen {
				return fmt.Errorf("the gate of %s is %s: %w", u.GetName(), rec.State, ErrOther)
			}
		}

		return nil
	}
}

// Record reads a resource, and what it says of its gate. To have no gate is an
// error.
func (w *World) Record(ctx context.Context, u *unstructured.Unstructured) (v1alpha1.GateRecord, *unstructured.Unstructured, error) {
	live := Prototype(u.GroupVersionKind())
	if err := w.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return v1alpha1.GateRecord{}, nil, err
	}

	rec, err := allowance.ParseGate(live)
	if err == nil && rec == nil {
		err = fmt.Errorf("%s has no gate: %w", u.GetName(), ErrOther)
	}

	if err != nil {
		return v1alpha1.GateRecord{}, nil, err
	}

	return *rec, live, nil
}
