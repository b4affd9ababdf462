// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// maxWindowWarnings is how many warnings the status of a window holds.
const maxWindowWarnings = 256

// CheckWindow returns what is wrong with the paths that a window allows, by the schemas of the
// kinds that were set last.
func (s *Reporter) CheckWindow(u *v1alpha1.UpgradeAllowance) []v1alpha1.TypeCheckingWarning {
	by := s.applied.Load()
	if by == nil {
		return nil
	}

	return s.Schemas.checkWindow(u, by.Named)
}

// checkWindow checks the paths that a window allows against the schema of each kind.
func (s *Schemas) checkWindow(u *v1alpha1.UpgradeAllowance, named []kind.Served) []v1alpha1.TypeCheckingWarning {
	kinds := kindsOfWindows([]v1alpha1.UpgradeAllowance{*u}, named)
	perKind := make([][]v1alpha1.TypeCheckingWarning, len(kinds))

	for i, gvk := range kinds {
		perKind[i] = ofKind(gvk, policy.CheckAllowed(u.Spec.Allow, gvk.GroupKind(), s.of(gvk)))
	}

	out := slices.Concat(perKind...)

	return slices.Clip(out[:min(len(out), maxWindowWarnings)])
}

// kindsOfWindows are the served kinds that windows name, each once.
func kindsOfWindows(list []v1alpha1.UpgradeAllowance, named []kind.Served) []schema.GroupVersionKind {
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
