// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parameter reads the objects that hold parameters of policies.
package parameter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

var errNotServed = errors.New("the API server does not serve the kind")

// Reader reads the objects that hold parameters of policies from the API server, and
// remembers them for two seconds. It is safe for concurrent use.
type Reader struct {
	live   client.Reader
	mapper meta.RESTMapper
	access *access.Access

	// namespaced is whether kinds have namespaces.
	namespaced *memory[schema.GroupVersionKind, bool]
	objects    *memory[paramKey, []map[string]any]
}

// paramKey is a query, without what does not matter to it.
type paramKey struct {
	kind                      schema.GroupVersionKind
	namespace, name, selector string
	several                   bool
}

// NewReader makes a Reader of a client without a cache, and of what shows which
// kinds that may read; nil for all.
func NewReader(live client.Reader, mapper meta.RESTMapper, may *access.Access, now func() time.Time) *Reader {
	return &Reader{
		live: live, mapper: mapper, access: may,
		namespaced: newMemory[schema.GroupVersionKind, bool](now), objects: newMemory[paramKey, []map[string]any](now),
	}
}

// Within finds parameters while a context lasts; nil where nobody can.
func (r *Reader) Within(ctx context.Context) expression.Params {
	if r == nil {
		return nil
	}

	return func(q expression.ParamQuery) (expression.ParamList, error) { return r.find(ctx, q) }
}

// find finds parameters, see [expression.Params].
func (r *Reader) find(ctx context.Context, q expression.ParamQuery) (expression.ParamList, error) {
	namespaced, err := r.namespaced.get(ctx, q.Kind, func(context.Context) (bool, error) { return r.scope(q.Kind) })

	switch {
	case err != nil:
		return expression.ParamList{}, err
	case !namespaced:
		q.Namespace = ""
	case q.Namespace == "":
		return expression.ParamList{}, policy.ErrParamNamespace
	}

	list, err := r.objects.get(ctx, keyOfQuery(q), func(ctx context.Context) ([]map[string]any, error) { return r.read(ctx, q) })

	return expression.ParamList{Objects: list, ClusterScoped: !namespaced}, err
}

// scope reports whether a kind has namespaces.
func (r *Reader) scope(gvk schema.GroupVersionKind) (bool, error) {
	m, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)

	switch {
	case meta.IsNoMatchError(err):
		return false, errNotServed
	case err != nil:
		return false, fmt.Errorf("cannot tell whether the kind has namespaces: %w", err)
	default:
		return m.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}

func keyOfQuery(q expression.ParamQuery) paramKey {
	out := paramKey{kind: q.Kind, namespace: q.Namespace, name: q.Name, several: q.Selector != nil}
	if out.several {
		out.selector = q.Selector.String()
	}

	return out
}

// read reads parameters from the API server, one more than may be used at most.
func (r *Reader) read(ctx context.Context, q expression.ParamQuery) ([]map[string]any, error) {
	if q.Selector == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(q.Kind)

		switch err := r.live.Get(ctx, client.ObjectKey{Namespace: q.Namespace, Name: q.Name}, u); {
		case served.Unserved(err):
			return nil, errNotServed
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, r.access.Explain(ctx, r.mapper, q.Kind.GroupKind(), right.Read, err)
		default:
			return []map[string]any{u.Object}, nil
		}
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(q.Kind.GroupVersion().WithKind(q.Kind.Kind + "List"))

	err := r.live.List(ctx, list,
		client.InNamespace(q.Namespace), client.MatchingLabelsSelector{Selector: q.Selector}, client.Limit(expression.MaxParams+1))

	switch {
	case served.Unserved(err):
		return nil, errNotServed
	case err != nil:
		return nil, r.access.Explain(ctx, r.mapper, q.Kind.GroupKind(), right.Read, err)
	}

	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})

	out := make([]map[string]any, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Object
	}

	return out, nil
}
