// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// errUnread says that an object may not be read: nothing is known of it.
var errUnread = errors.New("it may not be read")

// Objects reads objects: from the cache what is watched, and all else from the API server.
type Objects struct {
	Cache  client.Reader
	Live   client.Reader
	Mapper meta.RESTMapper
	// Known returns the version in which all objects of a kind are in the cache; false where
	// they are not, or not yet.
	Known func(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool)
}

// read reads an object that is referred to, of which metadata may be enough where it is not in
// the cache. The error is object.ErrGone where it is not there, and errUnread where it may not be
// read. It is not to be modified.
func (o Objects) read(ctx context.Context, ref resource.Reference, whole bool) (*unstructured.Unstructured, error) {
	u, err := o.cached(ctx, ref)
	if errors.Is(err, object.ErrGone) { // The cache may be behind.
		u, err = o.live(ctx, ref, whole)
	}

	switch {
	case apierrors.IsForbidden(err):
		return nil, errUnread
	case errors.Is(err, object.ErrGone):
		return nil, object.ErrGone
	case err != nil:
		return nil, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
	case ref.UID != "" && u.GetUID() != types.UID(ref.UID):
		return nil, object.ErrGone // What has its name is another one.
	default:
		return u, nil
	}
}

// cached reads from the cache; object.ErrGone where that has it not.
func (o Objects) cached(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	gvk, known := o.Known(ctx, ref.GroupKind())
	if !known {
		return nil, object.ErrGone
	}

	u := object.New(gvk)

	err := o.Cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	if object.IsGone(err) {
		return nil, object.ErrGone
	}

	return u, err
}

// live reads from the API server, in whatever version that serves.
func (o Objects) live(ctx context.Context, ref resource.Reference, whole bool) (*unstructured.Unstructured, error) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}

	lookup := served.Reading(o.Live, o.Mapper, key)
	if !whole {
		lookup.Get = func(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
			return o.metadata(ctx, key, gvk)
		}
	}

	gvk := ref.GroupVersionKind()

	if gvk.Version == "" {
		m, err := o.Mapper.RESTMapping(gvk.GroupKind())
		if meta.IsNoMatchError(err) {
			return nil, object.ErrGone
		}

		if err != nil {
			return nil, fmt.Errorf("cannot find the resource of kind %q: %w", ref.Kind, err)
		}

		gvk = m.GroupVersionKind
	}

	return lookup.Find(ctx, gvk)
}

// metadata reads the metadata of an object.
func (o Objects) metadata(ctx context.Context, key client.ObjectKey, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)

	if err := o.Live.Get(ctx, key, m); err != nil {
		return nil, err
	}

	m.SetGroupVersionKind(gvk)

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, fmt.Errorf("cannot convert metadata: %w", err)
	}

	return &unstructured.Unstructured{Object: content}, nil
}
