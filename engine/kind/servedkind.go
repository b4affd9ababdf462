// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// Name is a kind as policies name it: with a group, or in any group.
type Name struct {
	Group, Kind string
}

func (k Name) String() string {
	if k.Group == "" {
		return k.Kind
	}

	return k.Kind + "." + k.Group
}

// Matches reports whether the name means a kind.
func (k Name) Matches(gvk schema.GroupVersionKind) bool {
	return k.Kind == gvk.Kind && (k.Group == "" || k.Group == gvk.Group)
}

// Served is a kind the API server serves.
type Served struct {
	GVK      schema.GroupVersionKind
	Resource string
	// Managed is true of managed resources, once described, crossplane of Claims
	// and XRs.
	Managed, Crossplane bool
	// Composite is true of XRs.
	Composite bool
	// Ungateable is true of kinds that a provider is behind and that have no
	// management policies.
	Ungateable bool
	// Without are the served versions of a managed resource's kind, separated by commas, of which the schema has no
	// spec.managementPolicies: in these its gate is no field.
	Without string
	// Scales is true of kinds that can be scaled, owns of those whose objects may
	// wait for us.
	Scales, Owns bool
	// Configures is true of kinds that have to do with a provider's configuration.
	Configures bool
	// Definition distinguishes one version of the kind's CRD from another; empty where it
	// has none.
	Definition string
	// Unlisted is true of kinds that are served as far as anybody can know, but
	// that discovery does not list.
	Unlisted bool
}

// Gated reports whether changes of the kind must not be missed.
func (k Served) Gated() bool { return k.Managed || k.Crossplane }

// OfProvider says by the fields of the spec of a kind whether a provider is behind it:
// managed is true of managed resources with management policies, ungateable of those
// without.
func OfProvider(has func(field string) bool) (managed, ungateable bool) {
	policies, provider := has("managementPolicies"), has("forProvider")

	return policies && provider, provider && !policies
}

// GroupResource returns the resource of the kind.
func (k Served) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.GVK.Group, Resource: k.Resource}
}

// Named picks the kinds that any of some names means, and the names that mean
// none.
func Named(served []Served, names []Name) (kinds []Served, missing []Name) {
	for _, k := range served {
		if slices.ContainsFunc(names, func(n Name) bool { return n.Matches(k.GVK) }) {
			kinds = append(kinds, k)
		}
	}

	missing = slices.DeleteFunc(slices.Clone(names), func(n Name) bool {
		return slices.ContainsFunc(kinds, func(k Served) bool { return n.Matches(k.GVK) })
	})

	return kinds, missing
}

// Union adds to some kinds those of others that are not among them.
func Union(kinds, others []Served) []Served {
	out := slices.Clone(kinds)

	for _, k := range others {
		if !slices.ContainsFunc(out, func(o Served) bool { return o.GVK == k.GVK && o.Resource == k.Resource }) {
			out = append(out, k)
		}
	}

	return out
}

// ForRights are kinds as rights are found by.
func ForRights(served []Served) []right.Kind {
	out := make([]right.Kind, len(served))
	for i, k := range served {
		out[i] = k.AsRight()
	}

	return out
}

// AsRight returns the kind as rights are found by.
func (k Served) AsRight() right.Kind {
	return right.Kind{Group: k.GVK.Group, Kind: k.GVK.Kind, Resource: k.Resource, Crossplane: k.Gated(), Conditions: k.Crossplane}
}
