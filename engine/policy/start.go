// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// A chain of changes starts with a request of somebody, at some time. What is known of
// that request alone decides where the chain starts: further down other users carry it
// on, later, and a change that was allowed is not to stop half-way.

// metBelow warns of a condition that decides only where a chain starts.
const metBelow = "it reads now, the authorizer, or who asks and how: it decides who may initiate a change, " +
	"and counts as met where another policy or a window led to the change"

// CheckStart says which conditions of a policy that also serves below a root count as
// met there. Given are the permissions that other policies and windows give.
func (p *Policy) CheckStart(given []v1alpha1.Permission) []v1alpha1.TypeCheckingWarning {
	if !slices.ContainsFunc(given, p.reachedBy) {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	match := field.NewPath("spec", "match")

	for i, c := range p.conditions {
		if !c.ofStart {
			continue
		}

		at := match.Child("cel").Index(i)
		if n := len(p.spec.Match.CEL); i >= n {
			at = match.Child("matchConditions").Index(i - n)
		}

		out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: metBelow})
	}

	return out
}
