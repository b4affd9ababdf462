// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cached is what each replica of the webhook knows of the cluster without asking: parents and namespaces, and the
// policies in force. Where its caches may be stale, it reads from the API server.
//
// Its files:
//   - inputs.go: policies, windows and Enforcements in force; after a read error the last known ones ([Inputs.Get])
//   - objects.go: parents and namespaces, from a cache ([Objects.Parent]) or from the API server ([Objects.Read])
//   - named.go: the kinds that are cached: in policies and windows, in Enforcements, or composed; also [ObjectOf]
//   - informer.go: the age of a watch, and when it is too old for a decision; for all caches of the manager ([NewInformer])
package cached

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Objects reads parents and namespaces: from informers, which are started for
// each kind that is governed when it is first asked for, and live where these
// may be behind. Of other kinds parents are read live each time: who writes an
// object says what its owner is, and must not have the manager store all Secrets
// of a cluster. What it returns is shared, and not to be modified.
type Objects struct {
	cache  cache.Cache
	live   client.Reader
	mapper meta.RESTMapper
	// access reports which kinds may be watched; nil for all.
	access *access.Access
	// Governed are the kinds that the webhook was asked about.
	Governed governed

	mu sync.Mutex
	// watched are the kinds that are.
	watched map[schema.GroupKind]bool
	// versions are those in which kinds are served that are asked for in another
	// one.
	versions map[schema.GroupVersionKind]schema.GroupVersionKind
	// newer are objects that were read live and that the informers have not
	// caught up with. It is a cache: after a restart informers begin with a list of
	// what there is, and objects are read live until they have it.
	newer map[objectKey]*unstructured.Unstructured
}

type objectKey struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
}

// maxNewer is the most objects that are remembered to be newer.
const maxNewer = 4096

// NewObjects makes Objects of a cache and a client without one, and of what shows
// which kinds these may read; nil for all.
func NewObjects(c cache.Cache, live client.Reader, mapper meta.RESTMapper, may *access.Access) *Objects {
	return &Objects{
		cache: c, live: live, mapper: mapper, access: may, watched: map[schema.GroupKind]bool{},
		versions: map[schema.GroupVersionKind]schema.GroupVersionKind{}, newer: map[objectKey]*unstructured.Unstructured{},
	}
}

// served is the version in which a kind was found to be served, where that is
// not the one asked for.
func (o *Objects) served(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	o.mu.Lock()
	defer o.mu.Unlock()

	if other, ok := o.versions[gvk]; ok {
		return other
	}

	return gvk
}

// Parent returns what the informers know of a parent. False where they do not
// tell, or its kind is not governed.
func (o *Objects) Parent(
	ctx context.Context, named namedKinds, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, bool) {
	if gk := gvk.GroupKind(); !named.has(gk) && !o.Governed.has(gk) && gk != namespaceKind().GroupKind() {
		return nil, false
	}

	return o.Cached(ctx, gvk, key)
}

// Cached returns what the informers know of an object. False where they do not
// tell, because nothing watches the kind yet, it was not heard of for long, or
// there is none of that name.
func (o *Objects) Cached(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, bool) {
	gvk = o.served(gvk)

	if !o.watchable(ctx, gvk.GroupKind()) {
		return nil, false
	}

	proto := &unstructured.Unstructured{}
	proto.SetGroupVersionKind(gvk)

	informer, err := o.cache.GetInformer(ctx, proto, cache.BlockUntilSynced(false))
	if err != nil || !informer.HasSynced() || current.Stale(informer) {
		return nil, false
	}

	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, false
	}

	u := stored(shared.GetStore(), key)
	if u == nil {
		return nil, false
	}

	return o.newest(objectKey{gvk: gvk, key: key}, u), true
}

// watchable reports whether a kind is watched already, or may be: an informer of what
// may not be listed would ask for it for ever.
func (o *Objects) watchable(ctx context.Context, gk schema.GroupKind) bool {
	o.mu.Lock()
	known := o.watched[gk]
	o.mu.Unlock()

	if known {
		return true
	}

	if err := o.access.Readable(ctx, o.mapper, gk); err != nil {
		return false
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	o.watched[gk] = true

	return true
}

// Explain says of an error about an object which right is missing, where that is
// the cause.
func (o *Objects) Explain(ctx context.Context, gk schema.GroupKind, need func(schema.GroupResource) right.Need, err error) error {
	return o.access.Explain(ctx, o.mapper, gk, need, err)
}

// stored finds an object under its own key, or as a cluster-scoped one: an
// owner reference does not say.
func stored(store toolscache.Store, key types.NamespacedName) *unstructured.Unstructured {
	for _, k := range []string{toolscache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String(), key.Name} {
		if obj, ok, err := store.GetByKey(k); err == nil && ok {
			u, _ := obj.(*unstructured.Unstructured)

			return u
		}
	}

	return nil
}

// newest returns what was read live, until the informers have caught up with
// it.
func (o *Objects) newest(key objectKey, u *unstructured.Unstructured) *unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()

	read, ok := o.newer[key]
	if !ok {
		return u
	}

	if order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), read.GetResourceVersion()); err != nil || order >= 0 {
		delete(o.newer, key)

		return u
	}

	return read
}

// Read reads an object from the API server, in whatever version that serves;
// nil where nothing is. That a version is not served says nothing of the object. Whole is
// true where it is needed as it is, and not as it is remembered, see [resource.Trim].
func (o *Objects) Read(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, whole bool,
) (*unstructured.Unstructured, error) {
	u, err := served.Reading(o.live, o.mapper, key).Find(ctx, o.served(gvk))

	switch {
	case errors.Is(err, served.ErrGone):
		return nil, nil //nolint:nilnil // Gone, which is no error.
	case err != nil:
		return nil, fmt.Errorf("cannot get %s %q: %w", gvk.Kind, key.Name, o.Explain(ctx, gvk.GroupKind(), right.Read, err))
	}

	out := u
	if whole {
		out = u.DeepCopy()
	}

	resource.Trim(u)

	o.mu.Lock()
	defer o.mu.Unlock()

	if len(o.newer) >= maxNewer {
		clear(o.newer)
		clear(o.versions)
	}

	o.newer[objectKey{gvk: u.GroupVersionKind(), key: key}] = u

	if found := u.GroupVersionKind(); found != gvk {
		o.versions[gvk] = found
	}

	return out, nil
}

// Namespace returns a namespace; nil for none.
func (o *Objects) Namespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // Cluster-scoped objects have no namespace.
	}

	gvk := namespaceKind()
	key := types.NamespacedName{Name: name}

	if u, ok := o.Cached(ctx, gvk, key); ok {
		return u, nil
	}

	return o.Read(ctx, gvk, key, false)
}

func namespaceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
}

// KeyOf is what a reference is read by.
func KeyOf(ref resource.Reference) (schema.GroupVersionKind, types.NamespacedName) {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
