// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kindName is a kind as policies name it: with a group, or in any group.
type kindName struct {
	group, kind string
}

func (k kindName) String() string {
	if k.group == "" {
		return k.kind
	}

	return k.kind + "." + k.group
}

func (k kindName) matches(gvk schema.GroupVersionKind) bool {
	return k.kind == gvk.Kind && (k.group == "" || k.group == gvk.Group)
}

// servedKind is a kind the API server serves.
type servedKind struct {
	gvk        schema.GroupVersionKind
	resource   string
	managed    bool
	crossplane bool
}

// resolver finds the kinds that policies name.
type resolver struct {
	discovery discovery.DiscoveryInterface
	live      client.Reader
}

// resolve returns the served kinds of any of the names, ordered, and the names
// nothing serves. Kinds of our own, leases and webhook configurations are
// never among them.
func (r *resolver) resolve(ctx context.Context, names []kindName) ([]servedKind, []kindName, error) {
	lists, err := r.discovery.ServerPreferredResources()

	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, nil, fmt.Errorf("cannot discover kinds: %w", err)
	}

	var out []servedKind

	for _, list := range lists {
		served, err := r.named(ctx, list, names)
		if err != nil {
			return nil, nil, err
		}

		out = append(out, served...)
	}

	slices.SortFunc(out, func(a, b servedKind) int { return strings.Compare(a.gvk.String(), b.gvk.String()) })

	missing := slices.DeleteFunc(slices.Clone(names), func(n kindName) bool {
		return slices.ContainsFunc(out, func(k servedKind) bool { return n.matches(k.gvk) })
	})

	return out, missing, nil
}

// named returns the kinds of one group version that any of the names means.
func (r *resolver) named(ctx context.Context, list *metav1.APIResourceList, names []kindName) ([]servedKind, error) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil || exemptGroup(gv.Group) {
		return nil, nil //nolint:nilerr // Not a group we could govern.
	}

	var out []servedKind

	for _, res := range list.APIResources {
		gvk := gv.WithKind(res.Kind)
		if strings.Contains(res.Name, "/") || !slices.ContainsFunc(names, func(n kindName) bool { return n.matches(gvk) }) {
			continue
		}

		k, err := r.describe(ctx, gvk, res)
		if err != nil {
			return nil, err
		}

		out = append(out, k)
	}

	return out, nil
}

// exemptGroup says whether kinds of a group are never governed: a mistake in a
// policy about them could lock everybody out.
func exemptGroup(group string) bool {
	return group == "kausality.io" || group == "admissionregistration.k8s.io" || group == "coordination.k8s.io"
}

// describe looks a kind's CRD up, to tell managed resources from others.
func (r *resolver) describe(ctx context.Context, gvk schema.GroupVersionKind, res metav1.APIResource) (servedKind, error) {
	out := servedKind{gvk: gvk, resource: res.Name}
	out.crossplane = slices.ContainsFunc(res.Categories, func(c string) bool { return c == "composite" || c == "claim" })

	crd := &extv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: res.Name + "." + gvk.Group}, crd)

	if apierrors.IsNotFound(err) {
		return out, nil
	}

	if err != nil {
		return out, fmt.Errorf("cannot get the CRD of %s: %w", gvk.Kind, err)
	}

	for _, v := range crd.Spec.Versions {
		if v.Name == gvk.Version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties
			_, policies := spec["managementPolicies"]
			_, provider := spec["forProvider"]
			out.managed = policies && provider
		}
	}

	return out, nil
}
