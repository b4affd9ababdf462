// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// CheckWindow returns what is wrong with the paths that a window allows, by the schemas of the
// kinds that were set last.
func (s *Reporter) CheckWindow(u *v1alpha1.UpgradeAllowance) []v1alpha1.TypeCheckingWarning {
	by := s.applied.Load()
	if by == nil {
		return nil
	}

	return typecheck.Warnings(typecheck.Window(u, by.Applied.Named, s.Schemas.of))
}
