// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// Kinds are the served kinds that a policy names, each once.
func Kinds(p *v1alpha1.AllowancePolicy, served []kind.Served) []schema.GroupVersionKind {
	return kindsOf(kind.OfPolicy(p.Spec), served)
}

// WindowKinds are the served kinds that windows name, each once.
func WindowKinds(list []v1alpha1.UpgradeAllowance, served []kind.Served) []schema.GroupVersionKind {
	names := make([]kind.Name, 0, len(list))
	for i := range list {
		names = append(names, kind.OfPermissions(list[i].Spec.Allow)...)
	}

	return kindsOf(names, served)
}

func kindsOf(names []kind.Name, served []kind.Served) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind

	for _, k := range served {
		named := slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(k.GVK) })
		if named && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}

// EnforcedKinds are the served kinds against which the conditions of some Enforcements are
// checked: those that their rules name by resource or group, and not whatever there is.
func EnforcedKinds(list []v1alpha1.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(list))

	for i := range list {
		e, _ := enforcement.Compile(&list[i]) // Of a broken one what compiles is checked.
		out = append(out, enforcedKinds(e, served)...)
	}

	return out
}

func enforcedKinds(e *enforcement.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	if len(e.Spec().MatchConditions) == 0 {
		return nil
	}

	var out []schema.GroupVersionKind

	for _, k := range served {
		if len(out) < maxEnforcedKinds && e.Names(k.GroupResource()) && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}
