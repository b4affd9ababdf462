// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// dropUnused forgets the grant to delete a resource that nobody deletes: the gate
// has been open for that for as long as gates may be. What follows from the
// deletion of a parent is waited for, for the garbage collector tries again.
func (p *planner) dropUnused() {
	t := p.terms()
	if t.maxOpen <= 0 || p.now.Sub(p.record.Since.Time) < t.maxOpen || !slices.Contains(p.record.Actions, ActionDelete) {
		return
	}

	p.allowances = slices.DeleteFunc(slices.Clone(p.allowances), func(a v1alpha1.Allowance) bool {
		return allowance.OfDeletion(a) && a.Source.From == "" && p.recorded(a, ActionDelete)
	})
	p.pending = p.unserved()
}
