// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// findGated adds to the kinds that are named those that are gated all the same:
// what XRs compose by the function, and what a gate must not be taken away from
// yet. It returns these, and with them all kinds that are to be watched.
func (c *Reconciler) findGated(ctx context.Context, served, named []kind.Served) (gated, watched []kind.Served, err error) {
	if !c.Gated {
		c.composedKnown = true
		c.Composed.Set(discovery.Findings{}, named, named)

		return named, named, nil
	}

	found, err := c.Composed.Read(ctx, served)
	if err != nil {
		return nil, nil, err
	}

	if c.guarded == nil {
		if c.guarded, err = c.guardedBefore(ctx); err != nil {
			return nil, nil, err
		}
	}

	gated = slices.Clone(named)

	for _, k := range served {
		if slices.ContainsFunc(gated, func(g kind.Served) bool { return g.GVK == k.GVK }) {
			continue
		}

		add, err := c.gates(ctx, k, &found)
		if err != nil {
			return nil, nil, err
		}

		if add {
			k.Managed = true
			gated = append(gated, k)
		}
	}

	c.guarded = map[schema.GroupResource]bool{}
	for _, k := range gated {
		c.guarded[k.GroupResource()] = k.Managed
	}

	c.Composed.Set(found, named, gated)

	if err := c.Composed.EnqueueNotRun(ctx, served, found); err != nil {
		return nil, nil, err
	}

	c.composedKnown = found.Complete

	watched = slices.Clone(gated)

	for _, k := range found.Watched(served) {
		if !slices.ContainsFunc(watched, func(w kind.Served) bool { return w.GVK == k.GVK }) {
			watched = append(watched, k)
		}
	}

	return gated, watched, nil
}

// gates reports whether a kind that nobody names is gated.
func (c *Reconciler) gates(ctx context.Context, k kind.Served, found *discovery.Findings) (bool, error) {
	refers, was := found.Kinds[k.GVK.GroupKind()], c.guarded[k.GroupResource()]
	if !refers && !was {
		return false, nil
	}

	one := []kind.Served{k}
	if err := c.Resolver.Describe(ctx, one); err != nil || !one[0].Managed {
		return false, err
	}

	if refers {
		return true, nil
	}

	return c.lingers(ctx, k, found)
}

// lingers reports whether a kind that nothing names or composes any more has to
// keep its guards: for what was orphaned when its owner went, or is on its
// way out. Without them it could be deleted, and what it stands for be lost.
func (c *Reconciler) lingers(ctx context.Context, k kind.Served, found *discovery.Findings) (bool, error) {
	items, ok, err := c.Watches.List(ctx, k.GVK)
	if err != nil {
		return false, err
	}

	if !ok || !found.Complete {
		found.Complete = false

		return true, nil
	}

	for i := range items {
		left, err := c.left(ctx, &items[i], found)
		if err != nil || left {
			return left, err
		}
	}

	return false, nil
}

// left reports whether an object needs its guards all the same.
func (c *Reconciler) left(ctx context.Context, u *unstructured.Unstructured, found *discovery.Findings) (bool, error) {
	ref, ok := resource.ParentOf(u)
	if !ok || !management.Governed(u) {
		return gate.Left(u, nil, false), nil
	}

	parent, err := object.Find(ctx, c.Resolver.Live, c.Client.RESTMapper(), ref)
	if errors.Is(err, object.ErrGone) {
		return gate.Left(u, nil, false), nil
	}

	// What cannot be known keeps its guards, and nothing else from being done.
	if apierrors.IsForbidden(err) {
		return true, nil
	}

	if err != nil {
		return false, fmt.Errorf("cannot get the parent of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return gate.Left(u, parent, resource.RunsFor(parent, found.Revisions)), nil
}

// guardedBefore are the kinds that are guarded since before we were started.
func (c *Reconciler) guardedBefore(ctx context.Context) (map[schema.GroupResource]bool, error) {
	out := map[schema.GroupResource]bool{}
	guard := &admissionregistrationv1.ValidatingAdmissionPolicy{}

	err := c.Resolver.Live.Get(ctx, client.ObjectKey{Name: v1alpha1.NameDeleteGuard}, guard)
	if object.IsGone(err) {
		return out, nil
	}

	if err != nil {
		return nil, fmt.Errorf("cannot get guard %q: %w", v1alpha1.NameDeleteGuard, err)
	}

	if guard.Spec.MatchConstraints == nil {
		return out, nil
	}

	for _, rule := range guard.Spec.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, res := range rule.Resources {
				out[schema.GroupResource{Group: group, Resource: res}] = true
			}
		}
	}

	return out, nil
}
