// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Window returns what is wrong with the paths that a window allows, for each kind that it
// names.
func Window(u *v1alpha1.UpgradeAllowance, named []kind.Served, schemas Schemas) []Result {
	kinds := WindowKinds([]v1alpha1.UpgradeAllowance{*u}, named)

	out := make([]Result, 0, len(kinds))
	for _, gvk := range kinds {
		out = append(out, ofKind(gvk, policy.CheckAllowed(u.Spec.Allow, gvk.GroupKind(), schemas(gvk)))...)
	}

	return slices.Clip(out[:min(len(out), MaxWarnings)])
}

// WindowKinds are the served kinds that windows name, each once.
func WindowKinds(list []v1alpha1.UpgradeAllowance, named []kind.Served) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind

	for i := range list {
		names := kind.OfPermissions(list[i].Spec.Allow)

		for _, k := range named {
			if slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(k.GVK) }) && !slices.Contains(out, k.GVK) {
				out = append(out, k.GVK)
			}
		}
	}

	return out
}
