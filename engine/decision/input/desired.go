// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Desired is what is known where Crossplane applies what a composition function let through.
type Desired struct {
	// Was and is are the records of what was desired on the old and the new object.
	Was, Is *wish.Record
	// fields of the old object are those of who writes the records.
	fields managedfields.Fields
	// repairs and repairsNow are those of [request.Request].
	repairs, RepairsNow func(object map[string]any, c change.Change) bool
}

// readDesired reads the records of what was desired, and is. One that cannot be
// read says nothing.
func readDesired(req *request.Request, o request.Objects, by request.Writer, problems *request.Problems) Desired {
	out := Desired{repairs: req.Repairs, RepairsNow: req.RepairsNow}
	if o.Operation != request.OperationUpdate || !by.Applies() {
		return out
	}

	var err error
	if out.Was, err = wish.Parse(o.Old); err != nil {
		problems.Add(request.InObject(o.Old, err))
	}

	if out.Is, err = wish.Parse(o.New); err != nil {
		problems.Add(request.InObject(o.New, err))
	}

	if out.fields, err = managedfields.Of(o.Old, by.FieldManager); err != nil {
		problems.Add(err)
	}

	return out
}

// Wished reports whether a change is none by the wish of the pipeline, whatever
// the API server and other webhooks make of it: a composition function checked
// the same leaf, and let it through. What somebody else has set since then,
// and Crossplane no longer manages, it did not see.
func Wished(o request.Objects, desired Desired, c change.Change) bool {
	return !c.Gone && desired.Was.Same(desired.Is, o.New.Object, c.Path) && desired.fields.Manages(o.New.Object, c.Path)
}
