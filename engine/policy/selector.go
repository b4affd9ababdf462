// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// selectsBoth reports whether the policy's objectSelector selects the object as it is
// and as it is asked for: a write that sets the label which a policy asks for is not
// what that policy allows.
func (p *Policy) selectsBoth(in expression.Input) bool {
	if p.objects.Empty() {
		return true
	}

	return (in.Object == nil || p.objects.Matches(labelsOf(in.Object))) &&
		(in.OldObject == nil || p.objects.Matches(labelsOf(in.OldObject)))
}

// MaySelect reports whether the policy's selectors select the object as it is or as it
// is asked for. A namespace that is not known may be one that is selected.
func (p *Policy) MaySelect(in expression.Input) bool {
	selected := p.objects.Empty() || in.Object != nil && p.objects.Matches(labelsOf(in.Object)) ||
		in.OldObject != nil && p.objects.Matches(labelsOf(in.OldObject))

	return selected && (NamespaceUnknown(in, p.namespaces) || Selects(in, labels.Everything(), p.namespaces))
}

// SelectsBy reports whether the policy's objectSelector reads a label.
func (p *Policy) SelectsBy(label string) bool { return Reads(p.objects, label) }

// Reads reports whether a selector reads a label.
func Reads(sel labels.Selector, label string) bool {
	requirements, _ := sel.Requirements()

	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == label })
}
