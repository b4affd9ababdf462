// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

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

	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// composed finds the kinds that XRs refer to whose Composition runs the
// function. Crossplane writes these references before it makes what they refer
// to: there is nothing that would tell earlier what a pipeline is going to
// compose.
type composed struct {
	// functions are the names that the function is installed under.
	functions []string
	watches   *watches
	prompt    *prompt

	mu    sync.Mutex
	known following
	// told are the XRs of which it was told that the function does not run for them.
	told map[types.UID]told
}

// following is what was found at last.
type following struct {
	// revisions are the CompositionRevisions there are, by name: whether they run
	// the function.
	revisions map[string]bool
	// xrs are the kinds that those are for which do, kinds those that XRs refer to.
	xrs, kinds map[schema.GroupKind]bool
	// parents are the kinds of the Claims and others that those XRs are of.
	parents map[schema.GroupKind]bool
	// named are kinds that policies and Enforcements name, gated those whose objects
	// have gates, named or not.
	named, gated map[schema.GroupKind]bool
	// complete is false where not all could be read yet.
	complete bool
}

// read reads what the informers know. It waits for none of them: a kind that
// cannot be listed must not stop the others.
func (c *composed) read(ctx context.Context, served []servedKind) (following, error) {
	found := following{
		revisions: map[string]bool{}, xrs: map[schema.GroupKind]bool{}, kinds: map[schema.GroupKind]bool{},
		parents: map[schema.GroupKind]bool{}, complete: true,
	}

	if err := c.list(ctx, served, resource.RevisionKind(), &found, func(u *unstructured.Unstructured) {
		runs := resource.RunsFunction(u, c.functions)
		found.revisions[u.GetName()] = runs

		if runs {
			found.xrs[resource.ComposesFor(u)] = true
		}
	}); err != nil {
		return found, err
	}

	for gk := range found.xrs {
		if err := c.list(ctx, served, gk, &found, func(u *unstructured.Unstructured) {
			if resource.RunsFor(u, found.revisions) {
				if ref, ok := resource.ParentOf(u); ok {
					found.parents[ref.GroupKind()] = true
				}

				for _, ref := range resource.Composed(u) {
					found.kinds[ref.GroupKind()] = true
				}
			}
		}); err != nil {
			return found, err
		}
	}

	return found, nil
}

// list goes through the objects of a kind, if that is served.
func (c *composed) list(
	ctx context.Context, served []servedKind, gk schema.GroupKind, found *following, each func(*unstructured.Unstructured),
) error {
	i := slices.IndexFunc(served, func(k servedKind) bool { return k.gvk.GroupKind() == gk })
	if i < 0 {
		return nil
	}

	items, ok, err := c.watches.list(ctx, served[i].gvk)
	if err != nil {
		return err
	}

	found.complete = found.complete && ok

	for j := range items {
		each(&items[j])
	}

	return nil
}

// remember makes the finding that by which objects are judged.
func (c *composed) remember(found following, named, gated []servedKind) {
	found.named, found.gated = groupKinds(named), groupKinds(gated)

	c.mu.Lock()
	c.known = found
	c.mu.Unlock()
}

// lookAgain has the XRs looked at whose condition is to say that the function does
// not run for them any more. It follows remember, not read: an XR that changed its
// CompositionRevision between the two was judged by what was known before.
func (c *composed) lookAgain(ctx context.Context, served []servedKind, found following) error {
	left := map[schema.GroupKind][]types.NamespacedName{}

	for gk := range found.xrs {
		if err := c.list(ctx, served, gk, &found, func(u *unstructured.Unstructured) {
			if composition.NotRun(u, found.revisions) != "" {
				left[gk] = append(left[gk], client.ObjectKeyFromObject(u))
			}
		}); err != nil {
			return err
		}
	}

	c.watches.again(left)

	return nil
}

func groupKinds(kinds []servedKind) map[schema.GroupKind]bool {
	out := make(map[schema.GroupKind]bool, len(kinds))
	for _, k := range kinds {
		out[k.gvk.GroupKind()] = true
	}

	return out
}

// ungoverned says whether a kind is known to be composed, and to have no gates nor
// to own what has: nothing is to be passed on to its objects.
func (c *composed) ungoverned(gk schema.GroupKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	k := c.known

	return k.complete && k.kinds[gk] && !k.gated[gk] && !k.xrs[gk] && !k.parents[gk]
}

// needs are the kinds to be watched for what is found, beside those that have
// gates.
func (f following) needs(served []servedKind) []servedKind {
	var out []servedKind

	for _, k := range served {
		if gk := k.gvk.GroupKind(); gk == resource.RevisionKind() || f.xrs[gk] {
			out = append(out, k)
		}
	}

	return out
}

// parents are the kinds that XRs which run the function are of: what is decided
// about these is decided by their parents.
func (c *composed) parents(served []servedKind) []servedKind {
	c.mu.Lock()
	defer c.mu.Unlock()

	var out []servedKind

	for _, k := range served {
		if c.known.parents[k.gvk.GroupKind()] {
			out = append(out, k)
		}
	}

	return out
}

// look asks for the kinds to be read again where an XR refers to a new one.
func (c *composed) look(u *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known.xrs[u.GroupVersionKind().GroupKind()] && resource.RunsFor(u, c.known.revisions) &&
		slices.ContainsFunc(resource.Composed(u), func(ref resource.Reference) bool { return !c.known.kinds[ref.GroupKind()] }) {
		c.prompt.soon()
	}
}

// gone asks for the kinds to be read again some time after an XR is gone.
func (c *composed) gone(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known.xrs[gvk.GroupKind()] {
		c.prompt.later()
	}
}

// minds says whether an object without a gate is our business: of a kind that
// was named, or an XR that runs the function.
func (c *composed) minds(u *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.known.named[u.GroupVersionKind().GroupKind()] || resource.RunsFor(u, c.known.revisions)
}

// revisions looks at CompositionRevisions.
type revisions struct {
	*composed

	gvk    schema.GroupVersionKind
	reader client.Reader
}

// Reconcile asks for the kinds to be read again where a revision that runs the
// function comes or goes, or one comes that does not for XRs of a kind for which
// another one does.
func (r *revisions) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := prototype(r.gvk)

	err := r.reader.Get(ctx, req.NamespacedName, u)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get CompositionRevision %q: %w", req.Name, err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	was, known := r.known.revisions[req.Name]
	runs := err == nil && resource.RunsFunction(u, r.functions)

	if runs != was || err == nil && !known && r.known.xrs[resource.ComposesFor(u)] {
		r.prompt.soon()
	}

	return reconcile.Result{}, nil
}
