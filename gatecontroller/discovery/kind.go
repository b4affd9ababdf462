// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

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

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// Resolver finds the kinds that policies and Enforcements mean.
type Resolver struct {
	Discovery discovery.DiscoveryInterface
	// Crds reads the metadata of CRDs, live the whole of them.
	Crds, Live client.Reader

	// Described remembers what kinds are, by definition.
	Described map[string]Shape
	// last are the kinds that were served last.
	last []kind.Served
}

// Shape is what a CRD says of managed resources, and of what shows that they use a
// provider's configuration.
type Shape struct {
	managed, ungateable, usage bool
	// without is [kind.Served.Without].
	without string
}

// Served returns every kind that could be governed, in its preferred version,
// ordered. Kinds of our own, leases and webhook configurations are never among
// them.
func (r *Resolver) Served(ctx context.Context) ([]kind.Served, error) {
	groups, lists, err := r.Discovery.ServerGroupsAndResources()

	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, fmt.Errorf("cannot discover kinds: %w", err)
	}

	crds, err := r.versions(ctx)
	if err != nil {
		return nil, err
	}

	var out []kind.Served

	scaled := scalable(lists)

	for _, list := range preferred(groups, lists) {
		out = append(out, inGroup(list, crds, scaled)...)
	}

	behind, err := r.behind(ctx, crds, lists)
	if err != nil {
		return nil, err
	}

	out = append(append(out, behind...), r.lost(out, partial)...)
	r.last = out

	slices.SortFunc(out, func(a, b kind.Served) int { return strings.Compare(a.GVK.String(), b.GVK.String()) })

	return out, nil
}

// preferred leaves each resource in one version: the group's preferred one, or
// the first that has it.
func preferred(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	byVersion := make(map[string]*metav1.APIResourceList, len(lists))
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}

	out := make([]*metav1.APIResourceList, 0, len(lists))

	for _, group := range groups {
		seen := map[string]bool{}

		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			list, ok := byVersion[version.GroupVersion]
			if !ok {
				continue
			}

			delete(byVersion, version.GroupVersion)

			left := &metav1.APIResourceList{GroupVersion: list.GroupVersion}

			for _, res := range list.APIResources {
				if !seen[res.Name] {
					seen[res.Name] = true
					left.APIResources = append(left.APIResources, res)
				}
			}

			out = append(out, left)
		}
	}

	return out
}

// versions returns the version of each CRD, by name.
func (r *Resolver) versions(ctx context.Context) (map[string]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))

	if err := r.Crds.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list CRDs: %w", err)
	}

	out := make(map[string]string, len(list.Items))
	for _, crd := range list.Items {
		out[crd.GetName()] = fmt.Sprintf("%s/%d", crd.GetUID(), crd.GetGeneration())
	}

	return out, nil
}

// scalable are the resources that can be scaled in any version that is served: who
// scales chooses which.
func scalable(lists []*metav1.APIResourceList) map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // Not a group we could govern.
		}

		for _, res := range list.APIResources {
			if name, ok := strings.CutSuffix(res.Name, "/scale"); ok {
				out[schema.GroupResource{Group: gv.Group, Resource: name}] = true
			}
		}
	}

	return out
}

// inGroup returns the kinds of one group version.
func inGroup(list *metav1.APIResourceList, crds map[string]string, scaled map[schema.GroupResource]bool) []kind.Served {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil // Not a group we could govern.
	}

	out := make([]kind.Served, 0, len(list.APIResources))

	for _, res := range list.APIResources {
		version, custom := crds[res.Name+"."+gv.Group]

		// While a CRD is being deleted, discovery names no verb that changes its
		// objects. They can be, and must be released.
		if strings.Contains(res.Name, "/") || enforcement.Beyond(schema.GroupResource{Group: gv.Group, Resource: res.Name}) ||
			!slices.Contains(res.Verbs, "update") && !custom || !slices.Contains(res.Verbs, "get") {
			continue
		}

		k := kind.Served{GVK: gv.WithKind(res.Kind), Resource: res.Name, Owns: !slices.Contains(res.Categories, "managed")}
		k.Crossplane = slices.ContainsFunc(res.Categories, func(c string) bool { return c == "composite" || c == "claim" })
		k.Composite = slices.Contains(res.Categories, "composite")
		k.Scales = scaled[k.GroupResource()]

		if custom {
			k.Definition = version + "/" + gv.Version
			k.Configures = slices.Contains(res.Categories, categoryProvider)
		}

		out = append(out, k)
	}

	return out
}

// Describe reads the CRDs of kinds, to distinguish managed resources from others.
func (r *Resolver) Describe(ctx context.Context, kinds []kind.Served) error {
	for i := range kinds {
		k := &kinds[i]
		if k.Definition == "" {
			continue
		}

		if _, known := r.Described[k.Definition]; !known {
			if err := r.getCRD(ctx, *k); err != nil {
				return err
			}
		}

		shape := r.Described[k.Definition]
		k.Managed, k.Ungateable, k.Without = shape.managed, shape.ungateable, shape.without
	}

	return nil
}

func (r *Resolver) getCRD(ctx context.Context, k kind.Served) error {
	crd := &extv1.CustomResourceDefinition{}

	err := r.Live.Get(ctx, client.ObjectKey{Name: k.Resource + "." + k.GVK.Group}, crd)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot get the CRD of %s: %w", k.GVK.Kind, err)
	}

	var without []string

	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}

		shape := shapeOf(v.Schema.OpenAPIV3Schema.Properties)
		if v.Name == k.GVK.Version {
			r.Described[k.Definition] = shape
		}

		if v.Served && !shape.managed {
			without = append(without, v.Name)
		}
	}

	if shape, ok := r.Described[k.Definition]; ok && shape.managed {
		shape.without = strings.Join(without, ",")
		r.Described[k.Definition] = shape
	}

	return nil
}

// shapeOf returns what objects are by the schema of their fields.
func shapeOf(object map[string]extv1.JSONSchemaProps) Shape {
	managed, ungateable := kind.OfProvider(func(field string) bool {
		_, ok := object["spec"].Properties[field]

		return ok
	})

	return Shape{managed: managed, ungateable: ungateable, usage: isUsage(object)}
}
