// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// entry is one change that is held, and who asked for it by hand.
type entry struct {
	v1alpha1.HeldChange

	// askedBy is the user whose request the webhook held.
	askedBy string
}

// identity tells entries apart: by digest, or by the field of those that have none.
func (e *entry) identity() string {
	if e.Digest != "" {
		return e.Digest
	}

	return strings.Join([]string{string(e.Ref.UID), refText(e.Ref), e.ComposedResource, e.Field}, "\x00")
}

// collection is all that is found held.
type collection struct {
	entries map[string]*entry
	// fields are those of which the list of an XR says something.
	fields map[fieldOf]*entry
	// more is how many are counted, and not listed.
	more int
}

// fieldOf is a field of an object.
type fieldOf struct {
	uid   types.UID
	field string
}

// collect finds what is held in all that was read.
func (s *summary) collect() {
	for i := range s.Objects {
		s.fromList(&s.Objects[i])
	}

	for i := range s.Objects {
		s.fromAnnotation(&s.Objects[i])
	}

	for i := range s.Objects {
		s.fromOutside(&s.Objects[i])
	}
}

// fromOutside adds what somebody has changed of an object's external object. The object itself carries what approves its revert.
func (s *summary) fromOutside(o *Object) {
	ref := RefTo(o.Unstructured)

	for _, h := range gate.DriftEntries(o.Unstructured, s.WithoutDrift) {
		h.Ref, h.Parent, h.ComposedResource = ref, &ref, resource.ComposedName(o.Unstructured)
		h.Destroys = Destroys(o.GroupVersionKind().GroupKind(), o.Unstructured, h.Field)
		s.add(&entry{HeldChange: h})
	}
}

// fromList adds what a function lists.
func (s *summary) fromList(o *Object) {
	list, known := Listed(o.Unstructured)
	if !known {
		return
	}

	s.listed[o.GetUID()] = true

	if resource.Behind(o.Unstructured, list) {
		s.behind[o.GetUID()] = true
	}

	s.more += max(list.More, 0)
	parent := RefTo(o.Unstructured)

	for _, e := range list.Changes {
		e.Parent = &parent
		add := &entry{HeldChange: *e.DeepCopy()}
		s.add(add)

		if e.Ref.UID != "" {
			s.fields[fieldOf{e.Ref.UID, e.Field}] = add
		}
	}
}

// add adds an entry, unless one of the same digest is there. That says more: lists come first.
func (s *summary) add(e *entry) {
	was, ok := s.entries[e.identity()]
	if !ok {
		s.entries[e.identity()] = e

		return
	}

	was.askedBy = cmp.Or(was.askedBy, e.askedBy)
	was.Masked = was.Masked || e.Masked

	if was.Cause == nil {
		was.Cause = e.Cause
	}
}

// fromAnnotation adds what the webhook held of an object, or a function that wrote it down there.
func (s *summary) fromAnnotation(o *Object) {
	held, err := allowance.ParseHeld(o.Unstructured)
	if err != nil {
		return // Whoever reads it next reports it.
	}

	composed := o.Parent != nil && s.listed[o.Parent.UID]

	for _, h := range held {
		if n, more := allowance.MoreHeld(h); more {
			if !composed { // The list of the XR has them, or counts them.
				s.more += n
			}

			continue
		}

		// A record from before there were digests, of what the XR's list says more about.
		if was, ok := s.fields[fieldOf{o.GetUID(), h.Field}]; ok && composed && h.Digest == "" {
			was.askedBy = cmp.Or(was.askedBy, allowance.Author(h))

			continue
		}

		s.add(s.entryOf(o, h))
	}
}

// entryOf is one change that an object's annotation names. What is held of the root itself has no
// digest: there is no parent that could carry what an approval gives.
func (s *summary) entryOf(o *Object, h v1alpha1.HeldChange) *entry {
	user := allowance.Author(h)
	e := &entry{HeldChange: h}
	e.Ref, e.At, e.Digest, e.Cause = RefTo(o.Unstructured), "", "", s.causeOf(o, user)
	e.Masked = h.From == mask.Text || h.To == mask.Text
	e.Destroys = h.Destroys || Destroys(o.GroupVersionKind().GroupKind(), o.Unstructured, h.Field)

	if o.Parent != nil {
		parent := *o.Parent
		e.Parent, e.Digest = &parent, h.Digest
	}

	if len(h.Follows) == 0 && gated(o) && external(h.Field) {
		e.Follows = []string{gate.ActionUpdate}
	}

	if e.Cause.Type == v1alpha1.CauseDrift {
		e.askedBy = user
	}

	return e
}

// gated reports whether a managed resource has a gate, by its annotations alone.
func gated(o *Object) bool {
	return resource.Annotation(o.Unstructured, v1alpha1.AnnotationGate) != "" && !gate.Ungated(o.Unstructured)
}

// external reports whether a field of a managed resource is of what is outside.
func external(field string) bool {
	for _, root := range []string{"spec.forProvider", "spec.initProvider"} {
		if rest, ok := strings.CutPrefix(field, root); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}

	return false
}
