// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// subjects are the kinds that the webhook stamps: those that policies and
// Enforcements are about.
func subjects(want wanted, kinds []servedKind, enforced []enforced) []subject {
	deleted := deleting(want)

	out := make([]subject, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, subject{servedKind: k, deletes: slices.ContainsFunc(deleted, func(n kindName) bool { return n.matches(k.gvk) })})
	}

	for _, e := range enforced {
		for _, k := range e.kinds {
			i := slices.IndexFunc(out, func(s subject) bool { return s.gvk == k.gvk && s.resource == k.resource })
			if i < 0 {
				out = append(out, subject{servedKind: k, deletes: true})
			} else {
				out[i].deletes = true
			}
		}
	}

	return out
}

// awaited adds to some kinds those that the webhook was asked about before, and
// that policies still name: where the CRD of one comes back, what is done to its
// first objects must not be missed.
func awaited(subjects, before []subject, names []kindName) []subject {
	for _, s := range before {
		served := slices.ContainsFunc(subjects, func(o subject) bool {
			return o.gvk.GroupKind() == s.gvk.GroupKind() && o.resource == s.resource
		})
		if !served && slices.ContainsFunc(names, func(n kindName) bool { return n.matches(s.gvk) }) {
			subjects = append(subjects, s)
		}
	}

	return subjects
}

// deleting are the kinds whose deletion policies and windows are about.
func deleting(want wanted) []kindName {
	var out []kindName

	for _, p := range want.policies {
		if slices.Contains(p.Spec.Match.Fields, v1alpha1.MutationDelete) {
			out = append(out, kindName{group: p.Spec.Match.APIGroup, kind: p.Spec.Match.Kind})
		}

		out = append(out, deletingIn(p.Spec.Allow)...)
	}

	for _, w := range want.windows {
		out = append(out, deletingIn(w.Spec.Allow)...)
	}

	return out
}

func deletingIn(allow []v1alpha1.Permission) []kindName {
	var out []kindName

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal && slices.Contains(p.Mutations, v1alpha1.MutationDelete) {
			out = append(out, kindName{group: p.APIGroup, kind: p.Kind})
		}
	}

	return out
}
