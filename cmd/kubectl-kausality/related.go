// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// related are the objects that say more of one: its parent, and what was made for it.
type related struct {
	// parent is nil for a root, and where it could not be read.
	parent *unstructured.Unstructured
	// children are a Claim's XR, and what an XR composes.
	children []*unstructured.Unstructured
	// gates says what a policy says of gates; nil for nothing.
	gates func(policy string) *policy.Gate
	// problems say what could not be read.
	problems []string
}

// finder reads an object that another one refers to.
type finder interface {
	find(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error)
}

// relatedTo reads them. What is gone is left out, and what may not be read is noted:
// what the object itself says is worth showing without.
func relatedTo(ctx context.Context, from finder, u *unstructured.Unstructured) related {
	var out related

	if ref, ok := resource.ParentOf(u); ok {
		out.parent = out.read(ctx, from, ref)
	}

	composite := u

	if resource.IsClaim(u) {
		ref := resource.Map(u.Object, "spec", "resourceRef")

		composite = out.read(ctx, from, resource.Reference{
			APIVersion: resource.String(ref, "apiVersion"), Kind: resource.String(ref, "kind"), Name: resource.String(ref, "name"),
		})
		if composite == nil {
			return out
		}

		out.children = append(out.children, composite)
	}

	if !resource.IsComposite(composite) {
		return out
	}

	for _, ref := range resource.Composed(composite) {
		if child := out.read(ctx, from, ref); child != nil {
			out.children = append(out.children, child)
		}
	}

	return out
}

func (r *related) read(ctx context.Context, from finder, ref resource.Reference) *unstructured.Unstructured {
	u, err := from.find(ctx, ref)

	switch {
	case err == nil:
		return u
	case !errors.Is(err, served.ErrGone):
		r.problems = append(r.problems, fmt.Sprintf("cannot read %s %s: %v", ref.Kind, ref.Name, err))
	}

	return nil
}

// find is the one among what was made for the object that a condition names; nil
// where there is none.
func (r *related) find(name string) *unstructured.Unstructured {
	for _, u := range r.children {
		if kindName(u) == name {
			return u
		}
	}

	return nil
}
