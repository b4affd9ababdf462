// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// outside are the parts of a managed resource that a provider carries out.
func outside() []string { return []string{"spec.forProvider", "spec.initProvider"} }

// checkExternal finds changes of managed resources that are allowed without the actions of
// the provider that they take.
func (l *linter) checkExternal(item int, allow []v1alpha1.Permission) {
	actions := externalActions(allow)
	updates := slices.Contains(actions, typecheck.ActionUpdate) ||
		slices.Contains(actions, typecheck.ActionDelete) && slices.Contains(actions, typecheck.ActionCreate)

	for i, perm := range allow {
		if !l.managed(perm) {
			continue
		}

		for j, m := range perm.Mutations {
			at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(j).String()

			switch {
			case m == v1alpha1.MutationDelete && !slices.Contains(actions, typecheck.ActionDelete):
				l.report.Add(item, typecheck.DeleteMissing, at,
					fmt.Sprintf("delete of %s is allowed without External Delete: its gate does not open for it, and it is not deleted", perm.Kind),
					"add {relation: External, mutations: [Delete]} to spec.allow")
			case !updates && typecheck.Overlap(outside(), m):
				l.report.Add(item, typecheck.ExternalMissing, at,
					fmt.Sprintf("%s of %s is allowed without External Update: its gate does not open for it, and it is held",
						m, perm.Kind),
					"add {relation: External, mutations: [Update]} to spec.allow")
			}
		}
	}
}

// externalActions are those of the External permissions among some.
func externalActions(allow []v1alpha1.Permission) []string {
	var out []string

	for _, perm := range allow {
		if !typecheck.Child(perm) {
			out = append(out, perm.Mutations...)
		}
	}

	return out
}

// checkUnusedExternal finds actions of providers that a policy allows with no managed
// resource. Where a kind is not known, it may be one; and what is neither Crossplane's nor
// made of anything may be of another system, which has such verbs.
func (l *linter) checkUnusedExternal(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	var children []kind.Name

	for _, perm := range p.Object.Spec.Allow {
		if typecheck.Child(perm) {
			children = append(children, typecheck.NameOf(perm))
		}
	}

	none := func(k kind.Served) bool { return !k.Managed }
	matched := kind.OfMatch(&p.Object.Spec.Match)

	if !l.all(matched, none) || len(children) > 0 && !l.all(children, none) ||
		len(children) == 0 && !l.all(matched, func(k kind.Served) bool { return k.Crossplane }) {
		return
	}

	for i, perm := range p.Object.Spec.Allow {
		if typecheck.Child(perm) ||
			!slices.ContainsFunc(perm.Mutations, func(verb string) bool { return slices.Contains(typecheck.Verbs(), verb) }) {
			continue
		}

		at := field.NewPath("spec", "allow").Index(i).String()
		l.report.Add(p.At, typecheck.ExternalUnused, at,
			fmt.Sprintf("External %s is given together with a change of a managed resource, and the policy allows none", describe(perm.Mutations)),
			"allow it in the policy that allows the change of the managed resource, and take it away here")
	}
}

// checkIdleDelete finds External Delete that serves no deletion: for a field no gate opens for it.
func (l *linter) checkIdleDelete(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	actions := externalActions(p.Object.Spec.Allow)
	deletes := func(perm v1alpha1.Permission) bool {
		return typecheck.Child(perm) && slices.Contains(perm.Mutations, v1alpha1.MutationDelete)
	}

	if !slices.Contains(actions, typecheck.ActionDelete) || slices.Contains(actions, typecheck.ActionCreate) ||
		!slices.ContainsFunc(p.Object.Spec.Allow, l.managed) ||
		slices.Contains(p.Object.Spec.Match.Fields, v1alpha1.MutationDelete) || slices.ContainsFunc(p.Object.Spec.Allow, deletes) {
		return
	}

	for i, perm := range p.Object.Spec.Allow {
		if typecheck.Child(perm) || !slices.Contains(perm.Mutations, typecheck.ActionDelete) {
			continue
		}

		l.report.Add(p.At, typecheck.ExternalUnused, field.NewPath("spec", "allow").Index(i).String(),
			"External Delete does nothing here: a gate opens for Delete because of a deletion, and the policy allows none",
			"take Delete away, or allow the deletion of the managed resource")
	}
}
