// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Permission is the name of the Permission that lets its users start a chain by the
// policy; empty where it has none.
func (p *Policy) Permission() string {
	i := slices.IndexFunc(p.spec.Subjects, func(s v1alpha1.Subject) bool {
		return s.Kind == v1alpha1.SubjectPermission && s.MayInitiate
	})
	if i < 0 {
		return ""
	}

	return p.spec.Subjects[i].Name
}

// VerbsOf are the verbs of which one lets its user initiate by a Permission, from
// the most general to the narrowest.
func VerbsOf(permission string) [2]string {
	return [...]string{v1alpha1.VerbInitiate, v1alpha1.VerbInitiate + ":" + permission}
}
