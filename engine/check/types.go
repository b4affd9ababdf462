// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// typeCheckPolicies finds what the status of policies would say.
func (l *linter) typeCheckPolicies() {
	grants := typecheck.GrantsOf(l.policies(), l.windows())

	for _, p := range l.Input.Policies {
		if l.broken[p.At] {
			continue
		}

		l.report.AddAll(p.At, typecheck.Policy(p.Object, l.Input.Kinds, l.Input.Schemas, grants))
	}
}

// typeCheckEnforcements finds what that of Enforcements would.
func (l *linter) typeCheckEnforcements() {
	for _, e := range l.Input.Enforcements {
		if l.broken[e.At] {
			continue
		}

		l.report.AddAll(e.At, typecheck.Enforcement(e.Object, l.Input.Kinds, l.Input.Schemas))
	}
}

// schemaRemedy is what helps where there is no schema.
const schemaRemedy = "give its CRD, or the XRD that it comes from, with --filename"

// findUnchecked finds the kinds of which there is no schema, and what is wrong with the paths and verbs of windows.
func (l *linter) findUnchecked() {
	for _, p := range l.Input.Policies {
		if l.broken[p.At] {
			continue
		}

		m, match := &p.Object.Spec.Match, field.NewPath("spec", "match")

		if m.Kind != "" {
			l.unchecked(p.At, kind.Name{Group: m.APIGroup, Kind: m.Kind}, match.Child("kind"))
		}

		for i, name := range m.Kinds {
			l.unchecked(p.At, kind.Name{Group: m.APIGroup, Kind: name}, match.Child("kinds").Index(i))
		}

		l.uncheckedPermissions(p.At, p.Object.Spec.Allow)

		if gvk, ok := policy.ParamKindOf(&p.Object.Spec); ok && l.Input.Schemas(gvk) == nil {
			l.report.Add(p.At, typecheck.NotChecked, "spec.paramKind",
				fmt.Sprintf("what is read of params is not checked: nothing that was read has the schema of %s of %s", gvk.Kind, gvk.GroupVersion()),
				schemaRemedy)
		}
	}

	for _, w := range l.Input.Windows {
		if l.broken[w.At] {
			continue
		}

		l.uncheckedPermissions(w.At, w.Object.Spec.Allow)
		l.report.AddAll(w.At, l.Input.Schemas.OfWindow(w.Object, l.Input.Kinds))
		l.report.AddAll(w.At, typecheck.CheckVerbs(w.Object.Spec.Allow, false))
	}

	for _, e := range l.Input.Enforcements {
		l.uncheckedRules(e)
	}
}

func (l *linter) uncheckedPermissions(item int, allow []v1alpha1.Permission) {
	for i, perm := range allow {
		if typecheck.Child(perm) {
			l.unchecked(item, typecheck.NameOf(perm), field.NewPath("spec", "allow").Index(i).Child("kind"))
		}
	}
}

// unchecked tells of a kind without a schema, where it is named first.
func (l *linter) unchecked(item int, n kind.Name, at *field.Path) {
	if l.unknown[n] {
		return
	}

	kinds := l.known(n)
	for _, k := range kinds {
		if l.Input.Schemas(k.GVK) != nil {
			return
		}
	}

	remedy := schemaRemedy
	if like := l.kindsLike(n.Kind); len(kinds) == 0 && len(like) > 0 {
		remedy = fmt.Sprintf("if it is not %s that is meant, %s", strings.Join(like, " or "), schemaRemedy)
	}

	l.unknown[n] = true
	l.report.Add(item, typecheck.NotChecked, at.String(), fmt.Sprintf("not checked: nothing that was read has the schema of %s", n), remedy)
}

// kindsLike are the names of known kinds that another one was probably meant to be.
func (l *linter) kindsLike(name string) []string {
	var names []string

	seen := map[string]bool{}

	for _, k := range l.Input.Kinds {
		if k.GVK.Kind != name && !seen[k.GVK.Kind] {
			names = append(names, k.GVK.Kind)
			seen[k.GVK.Kind] = true
		}
	}

	return typecheck.Alike(name, names)
}

// uncheckedRules tells of the resources that the rules of an Enforcement name, of which
// there is no schema to check its conditions against.
func (l *linter) uncheckedRules(e typecheck.Item[*v1alpha1.Enforcement]) {
	if l.broken[e.At] {
		return
	}

	for i, rule := range e.Object.Spec.Match.ResourceRules {
		for j, name := range rule.Resources {
			for _, group := range rule.APIGroups {
				gr := schema.GroupResource{Group: group, Resource: name}
				if name == anything || group == anything || l.serves(gr) || l.undefined[gr] {
					continue
				}

				l.undefined[gr] = true

				remedy := schemaRemedy
				if like := typecheck.Alike(name, l.resourcesOf(group)); len(like) > 0 {
					remedy = fmt.Sprintf("if it is not %s that is meant, %s", strings.Join(like, " or "), schemaRemedy)
				}

				at := field.NewPath("spec", "match", "resourceRules").Index(i).Child("resources").Index(j)
				l.report.Add(e.At, typecheck.NotChecked, at.String(), fmt.Sprintf("not checked: nothing that was read defines %s", gr), remedy)
			}
		}
	}
}

// anything is every group, or resource.
const anything = "*"

// serves reports whether a resource is known.
func (l *linter) serves(gr schema.GroupResource) bool {
	for _, k := range l.Input.Kinds {
		if k.GroupResource() == gr {
			return true
		}
	}

	return false
}

// resourcesOf are those of a group that are known.
func (l *linter) resourcesOf(group string) []string {
	var out []string

	for _, k := range l.Input.Kinds {
		if k.GVK.Group == group {
			out = append(out, k.Resource)
		}
	}

	return out
}
