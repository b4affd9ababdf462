// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

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

// Writer writes the metadata of objects.
type Writer struct{ Client client.Client }

// RemoveFinalizer takes our finalizer away.
func (w Writer) RemoveFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	return w.SetFinalizers(ctx, u, slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == v1alpha1.Finalizer }))
}

// SetFinalizers writes the finalizers of the version of an object that was read.
func (w Writer) SetFinalizers(ctx context.Context, u *unstructured.Unstructured, list []string) error {
	return w.PatchMetadata(ctx, u, map[string]any{"finalizers": list})
}

// PatchMetadata changes metadata of the version of an object that was read.
func (w Writer) PatchMetadata(ctx context.Context, u *unstructured.Unstructured, metadata map[string]any) error {
	metadata[KeyVersion] = u.GetResourceVersion()

	raw, err := json.Marshal(map[string]any{KeyMetadata: metadata})
	if err != nil {
		return fmt.Errorf("cannot encode metadata of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	err = w.Client.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot patch %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
