// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Shard is the part of all objects that one manager is for: those in
// namespaces with one value of the label kausality.io/shard, or, of the shard
// without a name, those in namespaces without that label and those that are in
// no namespace.
type Shard struct {
	name string
	// namespaces are all of them; nil before they are followed.
	namespaces atomic.Pointer[toolscache.Store]

	mu sync.Mutex
	// unknown are namespaces that were asked for before they were known.
	unknown map[string]bool
}

// maxUnknown is how many of these are remembered: more are long gone.
const maxUnknown = 10000

// New makes the shard of a name; empty for what is in no shard.
func New(name string) (*Shard, error) {
	if problems := validation.IsDNS1123Label(name); name != "" && len(problems) > 0 {
		return nil, fmt.Errorf("cannot use shard %q: %s", name, problems[0])
	}

	return &Shard{name: name, unknown: map[string]bool{}}, nil
}

// Main reports whether this is the shard that also does what is done once.
func (s *Shard) Main() bool { return s.name == "" }

// Name of the shard; empty for that without one.
func (s *Shard) Name() string { return s.name }

// Has reports whether objects of a namespace are in the shard; of none for
// cluster-scoped ones. Those of a namespace that is not known yet are in no
// shard, until it is.
func (s *Shard) Has(namespace string) bool {
	known := s.namespaces.Load()
	if namespace == "" || known == nil {
		return s.Main()
	}

	ns := get(*known, namespace)
	if ns == nil {
		s.ask(namespace) // First: it may come to be known just now.

		ns = get(*known, namespace)
	}

	return ns != nil && OfNamespace(ns) == s.name
}

// others are the namespaces of all other shards that have a name, by that.
func (s *Shard) others() map[string][]client.Object {
	out := map[string][]client.Object{}

	known := s.namespaces.Load()
	if known == nil {
		return out
	}

	for _, obj := range (*known).List() {
		ns, ok := obj.(client.Object)
		if !ok {
			continue
		}

		if name := OfNamespace(ns); name != "" && name != s.name {
			out[name] = append(out[name], ns)
		}
	}

	return out
}

// get returns a namespace; nil for none.
func get(known toolscache.Store, namespace string) client.Object {
	obj, ok, err := known.GetByKey(namespace)
	if err != nil || !ok {
		return nil
	}

	ns, _ := obj.(client.Object)

	return ns
}

// ask remembers a namespace that is not known.
func (s *Shard) ask(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.unknown) >= maxUnknown {
		clear(s.unknown)
	}

	s.unknown[namespace] = true
}

// Asked reports whether a namespace was asked for before it was known.
func (s *Shard) Asked(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	was := s.unknown[namespace]
	delete(s.unknown, namespace)

	return was
}

// keyStripped marks what is left of an object that is in another shard.
const keyStripped = "stripped"

// Strip takes away all of an object in another shard but what shows that it is
// there, whose it is, of an XR also which Claim's, and whether it waits for us. It must not be used where anything else
// reads the same cache, as the webhook does.
func (s *Shard) Strip(u *unstructured.Unstructured) {
	if s.Has(u.GetNamespace()) {
		return
	}

	left := &unstructured.Unstructured{Object: map[string]any{keyStripped: true}}
	left.SetGroupVersionKind(u.GroupVersionKind())
	left.SetNamespace(u.GetNamespace())
	left.SetName(u.GetName())
	left.SetUID(u.GetUID())
	left.SetResourceVersion(u.GetResourceVersion())
	left.SetDeletionTimestamp(u.GetDeletionTimestamp())
	left.SetFinalizers(u.GetFinalizers())

	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		left.SetOwnerReferences([]metav1.OwnerReference{{UID: owner.UID, Controller: new(true)}})
	}

	if u.GetNamespace() == "" {
		if ref := resource.Map(u.Object, "spec", "claimRef"); ref != nil {
			left.Object["spec"] = map[string]any{"claimRef": ref}
		}
	}

	u.Object = left.Object
}

// Stripped reports whether an object was stripped when it came into the cache.
func Stripped(u *unstructured.Unstructured) bool {
	_, ok := u.Object[keyStripped]

	return ok
}

// Reader is a reader of the cache that reads live what was stripped there.
type Reader struct {
	Cache client.Reader
	Live  client.Reader
}

// Get reads an object: all of it, or what the cache has.
func (w Reader) Get(ctx context.Context, key client.ObjectKey, u *unstructured.Unstructured, all bool) error {
	if err := w.Cache.Get(ctx, key, u); err != nil || !all {
		return err
	}

	return w.complete(ctx, u)
}

// complete reads live what was stripped.
func (w Reader) complete(ctx context.Context, u *unstructured.Unstructured) error {
	if !Stripped(u) {
		return nil
	}

	key, gvk := client.ObjectKeyFromObject(u), u.GroupVersionKind()
	u.Object = nil
	u.SetGroupVersionKind(gvk)

	return w.Live.Get(ctx, key, u)
}

// Namespace is what of a namespace is watched.
func Namespace() *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})

	return ns
}

// errNoStore is the cause when the store of an informer cannot be read.
var errNoStore = errors.New("its informer has no store")

// WatchNamespaces has the shard know the namespaces there are, once it returns.
func (s *Shard) WatchNamespaces(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, Namespace())
	if err != nil {
		return fmt.Errorf("cannot watch namespaces: %w", err)
	}

	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("cannot watch namespaces: %w", errNoStore)
	}

	store := shared.GetStore()
	s.namespaces.Store(&store)

	return nil
}

// LabelChanged passes namespaces whose shard changes.
func LabelChanged() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return OfNamespace(e.Object) != "" },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return OfNamespace(e.ObjectOld) != OfNamespace(e.ObjectNew) },
	}
}

// OfNamespace returns the shard that a namespace is labelled with.
func OfNamespace(ns client.Object) string { return ns.GetLabels()[v1alpha1.LabelShard] }

// Foreign says what to do about an object of another shard: one that waits for
// us and is in no namespace is let go by whoever reconciles it, for a shard may
// have had it wait whose objects are its children.
func Foreign(u *unstructured.Unstructured) bool {
	return u.GetNamespace() != "" || !slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) || u.GetDeletionTimestamp() == nil
}
