// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// unlogged are those of what is in force that read managedFields, which records are without but
// for those of the old object: what they decide cannot be known.
type unlogged struct {
	// policies are what those match.
	policies []*v1alpha1.Match
	// others is true where a binding or an Enforcement does.
	others bool
}

// unloggedBy finds them: by their text, be it in a comment.
func unloggedBy(o inforce.Objects) unlogged {
	reads := func(expression string) bool { return strings.Contains(expression, "managedFields") }

	var out unlogged

	for i := range o.Policies {
		if m := &o.Policies[i].Spec.Match; slices.ContainsFunc(policy.Expressions(m), reads) {
			out.policies = append(out.policies, m)
		}
	}

	out.others = slices.ContainsFunc(o.Bindings, func(b v1alpha1.AllowanceBinding) bool {
		return slices.ContainsFunc(b.Spec.MatchConditions, func(c v1alpha1.BindingCondition) bool { return reads(c.Expression) })
	}) || slices.ContainsFunc(o.Enforcements, func(e v1alpha1.Enforcement) bool {
		return slices.ContainsFunc(e.Spec.MatchConditions, func(c v1alpha1.MatchCondition) bool { return reads(c.Expression) })
	})

	return out
}

// reads reports whether a decision about a kind depends on them.
func (u *unlogged) reads(gk schema.GroupKind) bool {
	return u.others || slices.ContainsFunc(u.policies, func(m *v1alpha1.Match) bool { return policy.IsAbout(m, gk) })
}
