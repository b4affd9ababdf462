// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
)

// Kinds finds the kinds that XRs refer to whose Composition runs the
// function. Crossplane writes these references before it makes what they refer
// to: there is nothing that would show earlier what a pipeline is going to
// compose.
type Kinds struct {
	// Functions are the names that the function is installed under.
	Functions []string
	Watches   *watch.Watches
	Prompt    *watch.Prompt

	mu    sync.Mutex
	known Findings
}

// Findings is what was found at last.
type Findings struct {
	// Revisions are the CompositionRevisions there are, by name: whether they run
	// the function.
	Revisions map[string]bool
	// xrs are the kinds that those are for which do, kinds those that XRs refer to.
	xrs, Kinds map[schema.GroupKind]bool
	// below are the kinds of XRs that those compose, whether they run the function or not, and within the XRs of both, by their UID.
	below  map[schema.GroupKind]bool
	within map[types.UID]bool
	// parents are the kinds of the Claims and others that those XRs are of.
	parents map[schema.GroupKind]bool
	// named are kinds that policies and Enforcements name, gated those whose objects
	// have gates, named or not.
	named, gated map[schema.GroupKind]bool
	// Complete is false where not all could be read yet.
	Complete bool
}

// Read reads what the informers know. It waits for none of them: a kind that
// cannot be listed must not stop the others.
func (c *Kinds) Read(ctx context.Context, served []kind.Served) (Findings, error) {
	found := Findings{
		Revisions: map[string]bool{}, xrs: map[schema.GroupKind]bool{}, Kinds: map[schema.GroupKind]bool{},
		parents: map[schema.GroupKind]bool{}, below: map[schema.GroupKind]bool{}, within: map[types.UID]bool{}, Complete: true,
	}
	composites := map[schema.GroupKind]bool{}

	if err := c.list(ctx, served, resource.RevisionKind(), &found, func(u *unstructured.Unstructured) {
		runs := resource.RunsFunction(u, c.Functions)
		found.Revisions[u.GetName()] = runs
		composites[resource.ComposesFor(u)] = true

		if runs {
			found.xrs[resource.ComposesFor(u)] = true
		}
	}); err != nil {
		return found, err
	}

	for gk := range found.xrs {
		if err := c.list(ctx, served, gk, &found, func(u *unstructured.Unstructured) {
			if resource.RunsFor(u, found.Revisions) {
				if ref, ok := resource.ParentOf(u); ok {
					found.parents[ref.GroupKind()] = true
				}

				found.add(u)
			}
		}); err != nil {
			return found, err
		}
	}

	err := c.readBelow(ctx, served, &found, composites)

	return found, err
}

// add adds what an XR composes.
func (f Findings) add(xr *unstructured.Unstructured) {
	f.within[xr.GetUID()] = true

	for _, ref := range resource.Composed(xr) {
		f.Kinds[ref.GroupKind()] = true
	}
}

// readBelow finds what XRs compose that do not run the function, below those that do.
func (c *Kinds) readBelow(ctx context.Context, served []kind.Served, found *Findings, composites map[schema.GroupKind]bool) error {
	for known := -1; known < len(found.within); {
		known = len(found.within)

		for gk := range composites {
			if !found.Kinds[gk] {
				continue
			}

			found.below[gk] = true

			if err := c.list(ctx, served, gk, found, func(u *unstructured.Unstructured) {
				if ref, ok := resource.ParentOf(u); ok && found.within[types.UID(ref.UID)] {
					found.add(u)
				}
			}); err != nil {
				return err
			}
		}
	}

	return nil
}

// list goes through the objects of a kind, if that is served.
func (c *Kinds) list(
	ctx context.Context, served []kind.Served, gk schema.GroupKind, found *Findings, each func(*unstructured.Unstructured),
) error {
	i := slices.IndexFunc(served, func(k kind.Served) bool { return k.GVK.GroupKind() == gk })
	if i < 0 {
		return nil
	}

	items, ok, err := c.Watches.List(ctx, served[i].GVK)
	if err != nil {
		return err
	}

	found.Complete = found.Complete && ok

	for j := range items {
		each(&items[j])
	}

	return nil
}

// Set makes the finding that by which objects are judged.
func (c *Kinds) Set(found Findings, named, gated []kind.Served) {
	found.named, found.gated = groupKinds(named), groupKinds(gated)

	c.mu.Lock()
	c.known = found
	c.mu.Unlock()
}

// EnqueueNotRun has the XRs reconciled whose condition is to say that the function does
// not run for them any more. It follows Set, not Read: an XR that changed its
// CompositionRevision between the two was judged by what was known before.
func (c *Kinds) EnqueueNotRun(ctx context.Context, served []kind.Served, found Findings) error {
	left := map[schema.GroupKind][]types.NamespacedName{}

	for gk := range found.xrs {
		if err := c.list(ctx, served, gk, &found, func(u *unstructured.Unstructured) {
			if condition.NotRun(u, found.Revisions) != "" {
				left[gk] = append(left[gk], client.ObjectKeyFromObject(u))
			}
		}); err != nil {
			return err
		}
	}

	c.Watches.Enqueue(left)

	return nil
}

func groupKinds(kinds []kind.Served) map[schema.GroupKind]bool {
	out := make(map[schema.GroupKind]bool, len(kinds))
	for _, k := range kinds {
		out[k.GVK.GroupKind()] = true
	}

	return out
}

// Ungoverned reports whether a kind is known to be composed, and to have no gates nor
// to own what has: nothing is to be passed on to its objects.
func (c *Kinds) Ungoverned(gk schema.GroupKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	k := c.known

	return k.Complete && k.Kinds[gk] && !k.gated[gk] && !k.xrs[gk] && !k.below[gk] && !k.parents[gk]
}

// Runs are the CompositionRevisions that are known, by name: whether they run the
// function. It is not to be modified.
func (c *Kinds) Runs() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.known.Revisions
}

// Gates reports whether objects of a kind have gates, or it is named; false where not all
// is known yet.
func (c *Kinds) Gates(gk schema.GroupKind) (gated, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.known.gated[gk], c.known.Complete
}

// Composes reports whether the function runs for XRs of a kind.
func (c *Kinds) Composes(gk schema.GroupKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.known.xrs[gk]
}

// Watched are the kinds to be watched for what is found, beside those that have
// gates.
func (f Findings) Watched(served []kind.Served) []kind.Served {
	var out []kind.Served

	for _, k := range served {
		if gk := k.GVK.GroupKind(); gk == resource.RevisionKind() || f.xrs[gk] || f.below[gk] {
			out = append(out, k)
		}
	}

	return out
}

// Parents are the kinds that XRs which run the function are of: what is decided
// about these is decided by their parents.
func (c *Kinds) Parents(served []kind.Served) []kind.Served {
	c.mu.Lock()
	defer c.mu.Unlock()

	var out []kind.Served

	for _, k := range served {
		if c.known.parents[k.GVK.GroupKind()] {
			out = append(out, k)
		}
	}

	return out
}

// Observe asks for the kinds to be read again where an XR refers to a new one.
func (c *Kinds) Observe(u *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()

	ref, _ := resource.ParentOf(u)

	if (c.known.xrs[u.GroupVersionKind().GroupKind()] && resource.RunsFor(u, c.known.Revisions) || c.known.within[types.UID(ref.UID)]) &&
		slices.ContainsFunc(resource.Composed(u), func(ref resource.Reference) bool { return !c.known.Kinds[ref.GroupKind()] }) {
		c.Prompt.Soon()
	}
}

// Forget asks for the kinds to be read again some time after an XR is gone.
func (c *Kinds) Forget(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known.xrs[gvk.GroupKind()] || c.known.below[gvk.GroupKind()] {
		c.Prompt.Later()
	}
}

// Governs reports whether an object without a gate is our business: of a kind that
// was named, or an XR that runs the function.
func (c *Kinds) Governs(u *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.known.named[u.GroupVersionKind().GroupKind()] || resource.RunsFor(u, c.known.Revisions)
}

// Revisions reconciles CompositionRevisions.
type Revisions struct {
	Kinds *Kinds

	Gvk    schema.GroupVersionKind
	Reader client.Reader
}

// Reconcile asks for the kinds to be read again where a revision that runs the
// function comes or goes, or one comes that does not for XRs of a kind for which
// another one does.
func (r *Revisions) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := object.New(r.Gvk)

	err := r.Reader.Get(ctx, req.NamespacedName, u)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get CompositionRevision %q: %w", req.Name, err)
	}

	r.Kinds.mu.Lock()
	defer r.Kinds.mu.Unlock()

	was, known := r.Kinds.known.Revisions[req.Name]
	runs := err == nil && resource.RunsFunction(u, r.Kinds.Functions)

	if runs != was || err == nil && !known && r.Kinds.known.xrs[resource.ComposesFor(u)] {
		r.Kinds.Prompt.Soon()
	}

	return reconcile.Result{}, nil
}
