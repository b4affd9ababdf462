// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served finds objects in whatever version of their kind the API server
// serves. An owner reference, or one of an XR to what it composes, keeps the
// version that it was written with: that nothing serves this one any more does
// not mean that what it refers to is gone.
package served

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrGone says that there is no object of a name, nor could there be: the API
// server says so in a version that it serves, or nothing defines the kind.
var ErrGone = errors.New("it is gone")

// errUnserved is the cause where nobody can know whether an object is there.
var errUnserved = errors.New("its kind is defined, and no version of it is served")

// Lookup searches for one object.
type Lookup struct {
	// Mapper knows the version in which a kind is served.
	Mapper meta.RESTMapper
	// Get reads the object, in one version of its kind.
	Get func(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error)
	// Definitions reads the CRDs of a group.
	Definitions func(ctx context.Context, group string) ([]unstructured.Unstructured, error)
}

// Reading searches for an object by a client, which should not read from a cache.
func Reading(r client.Reader, mapper meta.RESTMapper, key client.ObjectKey) Lookup {
	return Lookup{
		Mapper: mapper,
		Get: func(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)

			return u, r.Get(ctx, key, u)
		},
		Definitions: func(ctx context.Context, group string) ([]unstructured.Unstructured, error) {
			return definitions(ctx, r, group)
		},
	}
}

// Find returns the object, which may be in another version than the one asked
// for. ErrGone if it is not there; any other error is about a question that has
// no answer now.
func (l Lookup) Find(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u, err := l.Get(ctx, gvk)
	if !Unserved(err) {
		return answer(u, err)
	}

	m, err := l.Mapper.RESTMapping(gvk.GroupKind())
	if err == nil && m.GroupVersionKind != gvk {
		if u, err = l.Get(ctx, m.GroupVersionKind); !Unserved(err) {
			return answer(u, err)
		}
	}

	if err != nil && !Unserved(err) {
		return nil, fmt.Errorf("cannot tell in which version kind %q is served: %w", gvk.Kind, err)
	}

	return l.defined(ctx, gvk)
}

// defined searches for the object by what CRDs say.
func (l Lookup) defined(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	list, err := l.Definitions(ctx, gvk.Group)
	if err != nil {
		return nil, fmt.Errorf("cannot tell in which version kind %q is served: %w", gvk.Kind, err)
	}

	for i := range list {
		if kind, _, _ := unstructured.NestedString(list[i].Object, "spec", "names", "kind"); kind != gvk.Kind {
			continue
		}

		for _, version := range versions(&list[i]) {
			if u, err := l.Get(ctx, gvk.GroupKind().WithVersion(version)); !Unserved(err) {
				return answer(u, err)
			}
		}

		return nil, errUnserved
	}

	return nil, ErrGone
}

// versions are those that a CRD says are served.
func versions(crd *unstructured.Unstructured) []string {
	var out []string

	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions") // The API server checks its shape.

	for _, e := range list {
		v, _ := e.(map[string]any)
		name, _ := v["name"].(string)

		if served, _ := v["served"].(bool); served && name != "" {
			out = append(out, name)
		}
	}

	return out
}

func answer(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrGone
	case err != nil:
		return nil, err
	default:
		return u, nil
	}
}

// Unserved reports whether an error is about a version of a kind, or a kind, that
// the API server does not serve, and so says nothing of any object.
func Unserved(err error) bool {
	return meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// definitions reads the CRDs of a group: of all of them only the names.
func definitions(ctx context.Context, r client.Reader, group string) ([]unstructured.Unstructured, error) {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	names := &metav1.PartialObjectMetadataList{}
	names.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))

	if err := r.List(ctx, names); err != nil {
		return nil, fmt.Errorf("cannot list CRDs: %w", err)
	}

	var out []unstructured.Unstructured

	for i := range names.Items {
		name := names.Items[i].GetName()
		if !strings.HasSuffix(name, "."+group) {
			continue
		}

		crd := unstructured.Unstructured{}
		crd.SetGroupVersionKind(gvk)

		err := r.Get(ctx, client.ObjectKey{Name: name}, &crd)
		if apierrors.IsNotFound(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("cannot get CRD %q: %w", name, err)
		}

		if g, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); g == group {
			out = append(out, crd)
		}
	}

	return out, nil
}
