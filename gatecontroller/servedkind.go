// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/right"
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
	gvk      schema.GroupVersionKind
	resource string
	// managed is true of managed resources, once described, crossplane of Claims
	// and XRs.
	managed, crossplane bool
	// ungateable is true of kinds that a provider is behind and that have no
	// management policies.
	ungateable bool
	// scales is true of kinds that can be scaled, owns of those whose objects may
	// wait for us.
	scales, owns bool
	// configures is true of kinds that have to do with a provider's configuration.
	configures bool
	// definition tells one version of the kind's CRD from another; empty where it
	// has none.
	definition string
	// unlisted is true of kinds that are served as far as anybody can tell, but
	// that discovery does not list.
	unlisted bool
}

// gated says whether changes of the kind must not be missed.
func (k servedKind) gated() bool { return k.managed || k.crossplane }

func (k servedKind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

// named picks the kinds that any of some names means, and the names that mean
// none.
func named(served []servedKind, names []kindName) (kinds []servedKind, missing []kindName) {
	for _, k := range served {
		if slices.ContainsFunc(names, func(n kindName) bool { return n.matches(k.gvk) }) {
			kinds = append(kinds, k)
		}
	}

	missing = slices.DeleteFunc(slices.Clone(names), func(n kindName) bool {
		return slices.ContainsFunc(kinds, func(k servedKind) bool { return n.matches(k.gvk) })
	})

	return kinds, missing
}

// join adds to some kinds those of others that are not among them.
func join(kinds, others []servedKind) []servedKind {
	out := slices.Clone(kinds)

	for _, k := range others {
		if !slices.ContainsFunc(out, func(o servedKind) bool { return o.gvk == k.gvk && o.resource == k.resource }) {
			out = append(out, k)
		}
	}

	return out
}

// rightKinds are kinds as rights are found by.
func rightKinds(served []servedKind) []right.Kind {
	out := make([]right.Kind, len(served))
	for i, k := range served {
		out[i] = k.asRight()
	}

	return out
}

func (k servedKind) asRight() right.Kind {
	return right.Kind{Group: k.gvk.Group, Kind: k.gvk.Kind, Resource: k.resource, Crossplane: k.gated(), Conditions: k.crossplane}
}
