// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// GovernedKinds are the kinds that the webhook stamps: those that policies and
// Enforcements are about.
func GovernedKinds(want Config, kinds []kind.Served, enforced []Enforced) []GovernedKind {
	deleted := deleting(want)

	out := make([]GovernedKind, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, GovernedKind{Served: k, deletes: slices.ContainsFunc(deleted, func(n kind.Name) bool { return n.Matches(k.GVK) })})
	}

	for _, e := range enforced {
		for _, k := range e.Kinds {
			deletes := slices.Contains(e.Enforcement.Operations(k.GroupResource()), v1alpha1.OperationDelete)

			i := slices.IndexFunc(out, func(s GovernedKind) bool { return s.Served.GVK == k.GVK && s.Served.Resource == k.Resource })
			if i < 0 {
				out = append(out, GovernedKind{Served: k, deletes: deletes})
			} else {
				out[i].deletes = out[i].deletes || deletes
			}
		}
	}

	return out
}

// Awaited adds to some kinds those that the webhook was asked about before, and
// that policies still name: where the CRD of one comes back, what is done to its
// first objects must not be missed.
func Awaited(governed, before []GovernedKind, names []kind.Name) []GovernedKind {
	for _, s := range before {
		served := slices.ContainsFunc(governed, func(o GovernedKind) bool {
			return o.Served.GVK.GroupKind() == s.Served.GVK.GroupKind() && o.Served.Resource == s.Served.Resource
		})
		if !served && slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(s.Served.GVK) }) {
			governed = append(governed, s)
		}
	}

	return governed
}

// deleting are the kinds whose deletion policies and windows are about.
func deleting(want Config) []kind.Name {
	var out []kind.Name

	for _, p := range want.InForce().Policies {
		if slices.Contains(p.Spec.Match.Fields, v1alpha1.MutationDelete) {
			out = append(out, kind.OfMatch(&p.Spec.Match)...)
		}

		out = append(out, deletingIn(p.Spec.Allow)...)
	}

	for _, w := range want.Windows {
		out = append(out, deletingIn(w.Spec.Allow)...)
	}

	return out
}

// deletingIn are the kinds of children whose deletion permissions are for, as often as they name them.
func deletingIn(allow []v1alpha1.Permission) []kind.Name {
	var out []kind.Name

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal && slices.Contains(p.Mutations, v1alpha1.MutationDelete) {
			out = append(out, kind.Name{Group: p.APIGroup, Kind: p.Kind})
		}
	}

	return out
}
