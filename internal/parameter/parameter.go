// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parameter reads the objects that hold parameters of policies.
package parameter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

const (
	// paramsFor is how long what was read of parameters is good for.
	paramsFor = 2 * time.Second
	// maxParams is the most objects that a selector may find.
	maxParams = 100
	// maxQueries is how many answers are remembered.
	maxQueries = 4096
)

var (
	errManyParams = fmt.Errorf("the selector finds more than %d", maxParams)
	errNotServed  = errors.New("the API server does not serve the kind")
)

// Reader reads the objects that hold parameters of policies from the API server, and
// remembers them for two seconds. It is safe for concurrent use.
type Reader struct {
	live   client.Reader
	mapper meta.RESTMapper
	access *access.Access
	now    func() time.Time

	mu    sync.Mutex
	known map[paramKey]*paramAnswer
	// swept is when what is no longer good was forgotten last.
	swept time.Time
}

// paramKey is a query, without what does not matter to it.
type paramKey struct {
	kind                      schema.GroupVersionKind
	namespace, name, selector string
	several                   bool
}

// paramAnswer is read by the first who asks; others wait for it.
type paramAnswer struct {
	once  sync.Once
	until time.Time
	list  []map[string]any
	err   error
}

// NewReader makes a Reader of a client without a cache, and of what shows which
// kinds that may read; nil for all.
func NewReader(live client.Reader, mapper meta.RESTMapper, may *access.Access, now func() time.Time) *Reader {
	return &Reader{live: live, mapper: mapper, access: may, now: now, known: map[paramKey]*paramAnswer{}}
}

// Within finds parameters while a context lasts; nil where nobody can.
func (r *Reader) Within(ctx context.Context) policy.Params {
	if r == nil {
		return nil
	}

	return func(q policy.ParamQuery) ([]map[string]any, error) { return r.find(ctx, q) }
}

// find finds parameters, see [policy.Params].
func (r *Reader) find(ctx context.Context, q policy.ParamQuery) ([]map[string]any, error) {
	namespaced, err := r.scope(&q)
	if err != nil {
		return nil, err
	}

	if namespaced && q.Namespace == "" {
		return nil, policy.ErrParamNamespace
	}

	for {
		var own bool

		a := r.answer(q)
		a.once.Do(func() {
			own = true
			a.list, a.err = r.read(ctx, q)
		})

		if a.err == nil {
			return a.list, nil
		}

		r.forget(q, a)

		// That another request ended before the answer was there is nothing to this one.
		if own || ctx.Err() != nil {
			return nil, a.err
		}
	}
}

// scope reports whether the kind of a query has namespaces, and takes that away where it
// has none.
func (r *Reader) scope(q *policy.ParamQuery) (bool, error) {
	m, err := r.mapper.RESTMapping(q.Kind.GroupKind(), q.Kind.Version)

	switch {
	case meta.IsNoMatchError(err):
		return false, errNotServed
	case err != nil:
		return false, fmt.Errorf("cannot tell whether the kind has namespaces: %w", err)
	case m.Scope.Name() != meta.RESTScopeNameNamespace:
		q.Namespace = ""

		return false, nil
	default:
		return true, nil
	}
}

// answer is what is remembered of a query, or is to be read for it.
func (r *Reader) answer(q policy.ParamQuery) *paramAnswer {
	key, now := keyOfQuery(q), r.now()

	r.mu.Lock()
	defer r.mu.Unlock()

	if a, ok := r.known[key]; ok && now.Before(a.until) {
		return a
	}

	if len(r.known) >= maxQueries {
		clear(r.known)
	}

	if now.Sub(r.swept) >= paramsFor {
		maps.DeleteFunc(r.known, func(_ paramKey, a *paramAnswer) bool { return !now.Before(a.until) })
		r.swept = now
	}

	a := &paramAnswer{until: now.Add(paramsFor)}
	r.known[key] = a

	return a
}

// forget has a query be asked anew.
func (r *Reader) forget(q policy.ParamQuery, a *paramAnswer) {
	key := keyOfQuery(q)

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.known[key] == a {
		delete(r.known, key)
	}
}

func keyOfQuery(q policy.ParamQuery) paramKey {
	out := paramKey{kind: q.Kind, namespace: q.Namespace, name: q.Name, several: q.Selector != nil}
	if out.several {
		out.selector = q.Selector.String()
	}

	return out
}

// read reads parameters from the API server.
func (r *Reader) read(ctx context.Context, q policy.ParamQuery) ([]map[string]any, error) {
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
		client.InNamespace(q.Namespace), client.MatchingLabelsSelector{Selector: q.Selector}, client.Limit(maxParams+1))

	switch {
	case served.Unserved(err):
		return nil, errNotServed
	case err != nil:
		return nil, r.access.Explain(ctx, r.mapper, q.Kind.GroupKind(), right.Read, err)
	case len(list.Items) > maxParams:
		return nil, errManyParams
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
