// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Reader reads objects: from the cache what is watched, and all else from the API server.
type Reader struct {
	Cache  client.Reader
	Live   client.Reader
	Mapper meta.RESTMapper
	// Known returns the version in which all objects of a kind are in the cache; false where
	// they are not, or not yet.
	Known func(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool)
}

var _ Objects = Reader{}

// Read implements Objects.
func (r Reader) Read(ctx context.Context, ref v1alpha1.ObjectReference, live bool) (*unstructured.Unstructured, error) {
	u, err := (*unstructured.Unstructured)(nil), object.ErrGone
	if !live {
		u, err = r.cached(ctx, ref)
	}

	if errors.Is(err, object.ErrGone) { // Or the cache is behind.
		u, err = object.Find(ctx, r.Live, r.Mapper, resource.Reference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		})
	}

	if err != nil {
		return nil, err
	}

	if ref.UID != "" && u.GetUID() != ref.UID {
		return nil, object.ErrGone // What has its name is another one.
	}

	return u, nil
}

// cached reads from the cache; object.ErrGone where that has it not.
func (r Reader) cached(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	gvk, known := r.Known(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
	if !known {
		return nil, object.ErrGone
	}

	u := object.New(gvk)

	err := r.Cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	if object.IsGone(err) || err == nil && ref.UID != "" && u.GetUID() != ref.UID {
		return nil, object.ErrGone
	}

	return u, err
}
