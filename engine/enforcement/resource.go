// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Resources are names of resources by their kinds.
type Resources map[schema.GroupKind]string

// ResourcesOf are those that the statuses of some Enforcements show.
func ResourcesOf(list []v1alpha1.Enforcement) Resources {
	out := Resources{}

	for i := range list {
		for _, r := range list[i].Status.Resources {
			out[schema.GroupKind{Group: r.Group, Kind: r.Kind}] = r.Resource
		}
	}

	return out
}

// Of is the resource of a kind: the one that is reported, or else by the rule that
// most names follow.
func (r Resources) Of(gk schema.GroupKind) schema.GroupResource {
	if name, ok := r[gk]; ok {
		return schema.GroupResource{Group: gk.Group, Resource: name}
	}

	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))

	return plural.GroupResource()
}

// Misnamed reports whether the Enforcement's rules are not about the name that a kind
// suggests as they are about the resource's: a status has to show it.
func (e *Enforcement) Misnamed(gk schema.GroupKind, resource string) bool {
	return e.Covers(schema.GroupResource{Group: gk.Group, Resource: resource}) != e.Covers(Resources(nil).Of(gk))
}
