// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// withoutUnused forgets the grant to delete a resource that nobody deletes: the gate
// has been open for that for as long as gates may be. What follows from the
// deletion of a parent is waited for, for the garbage collector tries again.
func (p planning) withoutUnused() planning {
	t := p.m.terms(p.limits)
	if t.maxOpen <= 0 || p.now.Sub(p.m.record.Since.Time) < t.maxOpen || !slices.Contains(p.m.record.Actions, management.ActionDelete) {
		return p
	}

	p.m.allowances = slices.DeleteFunc(slices.Clone(p.m.allowances), func(a v1alpha1.Allowance) bool {
		return allowance.OfDeletion(a) && a.Source.From == "" && p.m.recorded(a, management.ActionDelete)
	})
	p.pending = p.unserved()

	return p
}
