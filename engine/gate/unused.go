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
	t := p.m.Terms(p.limits)
	if t.MaxOpen <= 0 || p.now.Sub(p.m.Record.Since.Time) < t.MaxOpen || !slices.Contains(p.m.Record.Actions, management.ActionDelete) {
		return p
	}

	p.m.Allowances = slices.DeleteFunc(slices.Clone(p.m.Allowances), func(a v1alpha1.Allowance) bool {
		return allowance.OfDeletion(a) && a.Source.From == "" && p.m.Recorded(a, management.ActionDelete)
	})
	p.pending = p.unserved()

	return p
}
