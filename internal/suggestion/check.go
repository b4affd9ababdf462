// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// check compiles what is suggested, and compares it with the schemas that are known, as the
// manager does. What a patch writes and no schema has, the API server drops: it says so.
func (w *writer) check(suggested []Suggested) []Problem {
	var (
		out      []Problem
		given    []v1alpha1.Permission
		compiled = make([]*policy.Policy, len(suggested))
	)

	for i := range suggested {
		p, errs := policy.Compile(&suggested[i].Policy)
		compiled[i], given = p, append(given, suggested[i].Policy.Spec.Allow...)

		for _, err := range errs {
			out = append(out, w.wrong(suggested[i], err.Error()))
		}
	}

	for i, p := range compiled {
		for _, gvk := range w.kindsOf(p.Spec()) {
			for _, found := range (typecheck.Against{Kind: gvk.GroupKind(), Schema: w.schemaOf(gvk)}).Policy(p.Spec()) {
				out = append(out, w.wrong(suggested[i], found.Field+": "+found.Message))
			}
		}

		for _, found := range typecheck.Reach(p.Spec(), given) {
			out = append(out, w.wrong(suggested[i], found.Field+": "+found.Message))
		}
	}

	return out
}

func (w *writer) wrong(s Suggested, why string) Problem {
	d := slices.IndexFunc(w.drafts, func(d draft) bool { return d.Policy.Name == s.Policy.Name })

	return Problem{Composition: w.drafts[d].composition, Why: "policy " + s.Policy.Name + ": " + why}
}

// kindsOf are the kinds that a policy names, in the versions that Compositions have them.
func (w *writer) kindsOf(s *v1alpha1.AllowancePolicySpec) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind

	add := func(gk schema.GroupKind) {
		gvk := gk.WithVersion("")

		for _, name := range slices.Sorted(maps.Keys(w.graphs)) {
			g := w.graphs[name]
			if g.kind.gvk().GroupKind() == gk {
				gvk = g.kind.gvk()
			}

			for _, c := range g.resources {
				if c.groupKind() == gk {
					gvk = c.kind.gvk()
				}
			}
		}

		if !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}

	add(schema.GroupKind{Group: s.Match.APIGroup, Kind: s.Match.Kind})

	for _, p := range s.Allow {
		if p.Relation != v1alpha1.RelationExternal {
			add(schema.GroupKind{Group: p.APIGroup, Kind: p.Kind})
		}
	}

	return out
}
