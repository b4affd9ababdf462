// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// desired is what is known where Crossplane applies what a composition function let through.
type desired struct {
	// was and is are the records of what was desired on the old and the new object.
	was, is *wish.Record
	// fields of the old object are those of who writes the records.
	fields managedfields.Fields
	// repairs and repairsNow are those of [Request].
	repairs, repairsNow func(object map[string]any, c change.Change) bool
}

// readDesired reads the records of what was desired, and is. One that cannot be
// read says nothing.
func readDesired(req *Request, o objects, by writer, problems *problems) desired {
	out := desired{repairs: req.Repairs, repairsNow: req.RepairsNow}
	if o.Operation != OperationUpdate || !by.applies() {
		return out
	}

	var err error
	if out.was, err = wish.Parse(o.Old); err != nil {
		problems.add(inObject(o.Old, err))
	}

	if out.is, err = wish.Parse(o.New); err != nil {
		problems.add(inObject(o.New, err))
	}

	if out.fields, err = managedfields.Of(o.Old, by.FieldManager); err != nil {
		problems.add(err)
	}

	return out
}

// wished reports whether a change is none by the wish of the pipeline, whatever
// the API server and other webhooks make of it: a composition function checked
// the same leaf, and let it through. What somebody else has set since then,
// and Crossplane no longer manages, it did not see.
func wished(o objects, desired desired, c change.Change) bool {
	return !c.Gone && desired.was.Same(desired.is, o.New.Object, c.Path) && desired.fields.Manages(o.New.Object, c.Path)
}
