// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// find reads what is referred to, in whatever version of its kind is served;
// served.ErrGone if it is not there.
func (c *cluster) find(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	lookup := served.Lookup{
		Mapper: c.mapper,
		Get: func(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
			return c.read(ctx, gvk, ref.Namespace, ref.Name)
		},
		Definitions: c.definitions,
	}

	return lookup.Find(ctx, ref.GroupVersionKind())
}

// definitions reads the CRDs of a group.
func (c *cluster) definitions(ctx context.Context, group string) ([]unstructured.Unstructured, error) {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

	list, err := c.client.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list CRDs: %w", err)
	}

	var out []unstructured.Unstructured

	for _, crd := range list.Items {
		if resource.String(crd.Object, "spec", "group") == group {
			out = append(out, crd)
		}
	}

	return out, nil
}
