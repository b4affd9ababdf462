// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Writer writes the metadata of objects.
type Writer struct{ Client client.Client }

// MergeFrom makes a patch of what differs from the version of an object that was read;
// where somebody has changed the object since, it is a conflict.
func MergeFrom(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// AddFinalizer has an object wait for us before it goes.
func (w Writer) AddFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	return w.Patch(ctx, u, func(out *unstructured.Unstructured) { controllerutil.AddFinalizer(out, v1alpha1.Finalizer) })
}

// RemoveFinalizer takes our finalizer away.
func (w Writer) RemoveFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	return w.Patch(ctx, u, func(out *unstructured.Unstructured) { controllerutil.RemoveFinalizer(out, v1alpha1.Finalizer) })
}

// Annotate writes annotations.
func (w Writer) Annotate(ctx context.Context, u *unstructured.Unstructured, annotations map[string]string) error {
	return w.Patch(ctx, u, func(out *unstructured.Unstructured) {
		all := out.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}

		maps.Copy(all, annotations)
		out.SetAnnotations(all)
	})
}

// Patch changes the version of an object that was read, which is not modified. One that
// is gone needs no change.
func (w Writer) Patch(ctx context.Context, u *unstructured.Unstructured, change func(*unstructured.Unstructured)) error {
	out := u.DeepCopy()
	change(out)

	err := w.Client.Patch(ctx, out, MergeFrom(u), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot patch %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
