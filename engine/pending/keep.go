// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keep keeps of the status before what nobody can know to be over: what an XR has listed whose
// pipeline fails, or has run last for the XR as it was before, and what is held of an object that
// could not be read.
func (s *summary) keep() {
	for i := range s.Input.Objects {
		xr := s.Input.Objects[i].Unstructured
		if _, said := resource.ConditionOf(xr, v1alpha1.ConditionState); said && !s.listed[xr.GetUID()] {
			s.lost[KeyOfObject(xr)] = true
		}
	}

	for id, was := range s.before {
		kept := &entry{HeldChange: *was.DeepCopy()}
		now, found := s.collection.entries[id]

		switch {
		case found && was.Parent != nil && s.lostOf(*was.Parent):
			// What the list said of it is more than what the object does.
			kept.askedBy = now.askedBy
			s.collection.entries[id] = kept
		case !found && s.keeps(was):
			s.collection.entries[id] = kept

			if p := was.Parent; s.lostOf(*p) {
				s.lost[KeyOf(*p)] = true
			}
		}
	}
}

// state is what is known of an object that a status names.
type state int

const (
	// unread is one that could not be read.
	unread state = iota
	// there is one that was read, and gone one that is not there any more.
	there
	gone
)

func (s *summary) stateOf(ref v1alpha1.ObjectReference) (*Object, state) {
	key := KeyOf(ref)

	if o, ok := s.read[key]; ok {
		if ref.UID != "" && o.GetUID() != ref.UID {
			return nil, gone
		}

		return o, there
	}

	if s.Input.Gone[key] {
		return nil, gone
	}

	return nil, unread
}

// lostOf reports whether an object is an XR whose list is not known now.
func (s *summary) lostOf(ref v1alpha1.ObjectReference) bool {
	o, is := s.stateOf(ref)

	return is == there && s.composites[o.GetUID()] && !s.listed[o.GetUID()]
}

// keeps reports whether a change that was held, and is not found now, may still be.
func (s *summary) keeps(e *v1alpha1.HeldChange) bool {
	_, ref := s.stateOf(e.Ref)
	if e.Ref.UID == "" {
		ref = unread // It is still to be made.
	} else if ref == gone {
		return false
	}

	if e.Parent == nil {
		return false
	}

	_, parent := s.stateOf(*e.Parent)

	switch parent {
	case gone:
		return false
	case there:
		o := s.read[KeyOf(*e.Parent)]
		if s.listed[o.GetUID()] && !s.behind[o.GetUID()] {
			return false // It says all.
		}

		return s.composites[o.GetUID()] || ref == unread
	default:
		return ref == unread
	}
}

// since is when a change was first held.
func (s *summary) since(e *entry) *metav1.Time {
	if was, ok := s.before[e.identity()]; ok && was.Cause != nil && was.Cause.Since != nil {
		return was.Cause.Since.DeepCopy()
	}

	return s.now.DeepCopy()
}
