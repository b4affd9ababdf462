// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// readWishes reads the records of what was wished, and is. One that cannot be
// read says nothing.
func (f *facts) readWishes() {
	if f.Operation != OperationUpdate || !f.applies() {
		return
	}

	var err error
	if f.was, err = wish.Parse(f.Old); err != nil {
		f.problem(inObject(f.Old, err))
	}

	if f.is, err = wish.Parse(f.New); err != nil {
		f.problem(inObject(f.New, err))
	}

	if f.fields, err = managedfields.Of(f.Old, f.FieldManager); err != nil {
		f.problem(err)
	}
}

// wished reports whether a change is none by the wish of the pipeline, whatever
// the API server and other webhooks make of it: a composition function checked
// the same leaf, and let it through. What somebody else has set since then,
// and Crossplane no longer manages, it did not see.
func (x *exemptions) wished(c change.Change) bool {
	return !c.Gone && x.was.Same(x.is, x.New.Object, c.Path) && x.fields.Manages(x.New.Object, c.Path)
}
