// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// writer writes the metadata of objects.
type writer struct{ client client.Client }

// release takes our finalizer away.
func (w writer) release(ctx context.Context, u *unstructured.Unstructured) error {
	return w.finalizers(ctx, u, slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == v1alpha1.Finalizer }))
}

func (w writer) finalizers(ctx context.Context, u *unstructured.Unstructured, list []string) error {
	return w.patch(ctx, u, map[string]any{"finalizers": list})
}

// patch changes metadata of the version of an object that was read.
func (w writer) patch(ctx context.Context, u *unstructured.Unstructured, metadata map[string]any) error {
	metadata[keyVersion] = u.GetResourceVersion()

	raw, err := json.Marshal(map[string]any{keyMetadata: metadata})
	if err != nil {
		return fmt.Errorf("cannot encode metadata of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	err = w.client.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(ParentManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot patch %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
