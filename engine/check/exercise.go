// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// checkExercise finds out whether Crossplane may carry on what a policy allows of what
// Crossplane makes, and whether others may, too.
func (l *linter) checkExercise(p typecheck.Item[*v1alpha1.AllowancePolicy]) {
	const at = "spec.subjects"

	spec := &p.Object.Spec
	if !slices.ContainsFunc(spec.Allow, typecheck.Child) ||
		!l.all(kind.OfMatch(&spec.Match), func(k kind.Served) bool { return k.Crossplane }) {
		return
	}

	crossplane := policy.User{Name: l.Input.Settings.Crossplane, Groups: policy.ServiceAccountGroups(l.Input.Settings.Crossplane)}
	listed := slices.ContainsFunc(spec.Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate })

	switch {
	case !policy.MayExercise(spec.Subjects, crossplane):
		l.report.Add(p.At, typecheck.NobodyExercises, at,
			fmt.Sprintf("what is made for a %s Crossplane changes (%s), and of the subjects only %s may",
				policy.DescribeKinds(&spec.Match), crossplane.Name,
				policy.Describe(spec.Subjects, func(s v1alpha1.Subject) bool { return !s.MayInitiate })),
			"add Crossplane's service account to spec.subjects, or give the others mayInitiate: true")
	case !listed:
		l.report.Add(p.At, typecheck.AnybodyExercises, at,
			fmt.Sprintf("anybody may make the changes that the policy allows of what is made for a %s",
				policy.DescribeKinds(&spec.Match)),
			fmt.Sprintf("list Crossplane's service account (%s) without mayInitiate, to keep others from it", crossplane.Name))
	}
}
