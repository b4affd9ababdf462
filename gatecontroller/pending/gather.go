// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// gathering reads what a status is about.
type gathering struct {
	Reconciler *Reconciler

	root Root
	// read are all that are there, and gone those that are not.
	read map[pending.Key]*unstructured.Unstructured
	gone map[pending.Key]bool
	// asked are the references that were followed.
	asked map[resource.Reference]bool
	// byRef are the keys of those that were read, by what referred to them, and unread the
	// references to what may not be.
	byRef  map[resource.Reference]pending.Key
	unread map[resource.Reference]bool
}

// gather reads a root's XRs, what is known to have something held below it, and what its
// PendingChange named last, with all between these and the root.
func (r *Reconciler) gather(
	ctx context.Context, root *unstructured.Unstructured, previous *v1alpha1.PendingChangeStatus,
) (*gathering, error) {
	g := &gathering{
		Reconciler: r, root: pending.KeyOfObject(root), read: map[pending.Key]*unstructured.Unstructured{},
		gone: map[pending.Key]bool{}, asked: map[resource.Reference]bool{}, byRef: map[resource.Reference]pending.Key{},
		unread: map[resource.Reference]bool{},
	}
	r.index.follow(g.root, g.root)
	g.add(root)

	// 1. What it is composed of.
	if err := g.composites(ctx, root, maxDepth); err != nil {
		return nil, err
	}

	for i := range previous.Changes {
		if parent := previous.Changes[i].Parent; parent != nil {
			if err := g.follow(ctx, referenceTo(*parent), true); err != nil {
				return nil, err
			}
		}
	}

	// 2. What was heard of.
	for _, key := range r.index.of(g.root) {
		if err := g.follow(ctx, referenceByKey(key), false); err != nil {
			return nil, err
		}
	}

	// 3. What was listed, unless an XR says already that it still is.
	listed := g.listed()

	for i := range previous.Changes {
		e := &previous.Changes[i]
		if e.Ref.UID == "" || listed[e.Digest] {
			continue
		}

		if err := g.follow(ctx, referenceTo(e.Ref), false); err != nil {
			return nil, err
		}
	}

	return g, nil
}

// listed are the digests of changes that lists of XRs name.
func (g *gathering) listed() map[string]bool {
	out := map[string]bool{}

	for _, u := range g.read {
		if list, known := pending.Listed(u); known {
			for _, e := range list.Changes {
				out[e.Digest] = e.Digest != ""
			}
		}
	}

	return out
}

// composites reads the XR of a Claim, and the XRs that an XR is composed of.
func (g *gathering) composites(ctx context.Context, u *unstructured.Unstructured, depth int) error {
	var refs []resource.Reference

	switch {
	case depth == 0:
	case resource.IsClaim(u):
		ref := resource.Map(u.Object, "spec", "resourceRef")
		refs = []resource.Reference{{
			APIVersion: resource.String(ref, "apiVersion"), Kind: resource.String(ref, "kind"), Name: resource.String(ref, "name"),
		}}
	case resource.IsComposite(u):
		for _, ref := range resource.Composed(u) {
			if g.Reconciler.Composes(ref.GroupKind()) {
				refs = append(refs, ref)
			}
		}
	}

	for _, ref := range refs {
		if ref.Name == "" || g.asked[ref] {
			continue
		}

		if err := g.follow(ctx, ref, true); err != nil {
			return err
		}

		if xr := g.read[g.byRef[ref]]; xr != nil {
			if err := g.composites(ctx, xr, depth-1); err != nil {
				return err
			}
		}
	}

	return nil
}

// follow reads an object, and those that it is below of.
func (g *gathering) follow(ctx context.Context, ref resource.Reference, whole bool) error {
	for range maxDepth {
		if g.asked[ref] {
			return nil
		}

		g.asked[ref] = true

		key := pending.Key{GroupKind: ref.GroupKind(), Namespace: ref.Namespace, Name: ref.Name}
		if u := g.read[key]; u != nil && (ref.UID == "" || u.GetUID() == types.UID(ref.UID)) {
			g.byRef[ref] = key

			return nil
		}

		g.Reconciler.index.follow(g.root, key)

		u, err := g.Reconciler.Objects.read(ctx, ref, whole)

		switch {
		case errors.Is(err, object.ErrGone):
			g.gone[key] = true

			return nil
		case errors.Is(err, errUnread):
			g.unread[ref] = true

			return nil
		case err != nil:
			return err
		}

		g.byRef[ref] = g.add(u)

		parent, ok := resource.ParentOf(u)
		if !ok {
			return nil
		}

		ref, whole = parent, true
	}

	return nil
}

// add notes an object that is there.
func (g *gathering) add(u *unstructured.Unstructured) pending.Key {
	key := pending.KeyOfObject(u)
	g.read[key] = u
	g.Reconciler.index.identify(key, u.GetUID())

	return key
}

// objects are the root and what is below it. What has come to be below another one is as good as
// gone.
func (g *gathering) objects() []pending.Object {
	out := make([]pending.Object, 0, len(g.read))

	for key, u := range g.read {
		if key == g.root {
			out = append(out, pending.Object{Unstructured: u})

			continue
		}

		switch below, known := g.below(u); {
		case below:
			ref := pending.RefTo(g.parentOf(u))
			out = append(out, pending.Object{Unstructured: u, Parent: &ref})
		case known:
			g.gone[key] = true
		}
	}

	return out
}

// parentOf is the parent of an object; nil where it has none, or that was not read.
func (g *gathering) parentOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	ref, ok := resource.ParentOf(u)
	if !ok {
		return nil
	}

	return g.read[g.byRef[ref]]
}

// below reports whether an object is below the root; known is false where a parent may not be
// read.
func (g *gathering) below(u *unstructured.Unstructured) (below, known bool) {
	for range maxDepth {
		parent := g.parentOf(u)
		if parent == nil {
			ref, ok := resource.ParentOf(u)

			return false, !ok || !g.unread[ref]
		}

		if pending.KeyOfObject(parent) == g.root {
			return true, true
		}

		u = parent
	}

	return false, true
}
