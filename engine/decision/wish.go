// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/apply"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// applies says whether Crossplane applies what a pipeline wishes. Its record of
// that is true: nobody else may write it.
func (d *decider) applies() bool {
	return d.User.Name == d.Settings.Crossplane && d.User.Name != "" && strings.HasPrefix(d.FieldManager, apply.ComposedManager)
}

// readWishes reads the records of what was wished, and is. One that cannot be
// read says nothing.
func (d *decider) readWishes() {
	if d.Operation != OperationUpdate || !d.applies() {
		return
	}

	var err error
	if d.was, err = wish.Parse(d.Old); err != nil {
		d.problem(inObject(d.Old, err))
	}

	if d.is, err = wish.Parse(d.New); err != nil {
		d.problem(inObject(d.New, err))
	}

	if d.fields, err = apply.FieldsOf(d.Old, d.FieldManager); err != nil {
		d.problem(err)
	}
}

// wished says whether a change is none by the wish of the pipeline, whatever
// the API server and other webhooks make of it: a composition function looked
// at the same leaf, and let it through. What somebody else has set since then,
// and Crossplane no longer manages, it did not see.
func (d *decider) wished(c change.Change) bool {
	return !c.Gone && d.was.Same(d.is, d.New.Object, c.Path) && d.fields.Manages(d.New.Object, c.Path)
}

// keepWishes puts back the record of each wish that is held here, though a
// composition function let it through. It forgets one that is as it was: what is
// stored then has Crossplane as its manager, and would count as wished.
func (d *decider) keepWishes() {
	if d.is == nil {
		return
	}

	kept := false

	for _, c := range d.back {
		object, at := d.asked.Object, c.Path
		if c.Gone || c.Removal() { // It is in the old object alone.
			if object = d.Old.Object; c.Was != nil {
				at = c.Was
			}
		}

		same := d.was.Same(d.is, object, at)
		if d.is.Restore(d.was, object, at) || same && d.is.Forget(object, at) {
			kept = true
		}
	}

	if !kept {
		return
	}

	text, err := d.is.Format(d.New.GetAPIVersion(), d.New.GetKind())
	if err != nil {
		d.problem(inObject(d.New, err))
	}

	annotate(d.New, v1alpha1.AnnotationWish, text)
}
