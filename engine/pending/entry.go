// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// entry is one change that is held, and who asked for it by hand.
type entry struct {
	HeldChange v1alpha1.HeldChange

	// askedBy is the user whose request the webhook held.
	askedBy string
}

// identity tells entries apart: by digest, or by the field of those that have none.
func (e *entry) identity() string {
	if e.HeldChange.Digest != "" {
		return e.HeldChange.Digest
	}

	return strings.Join([]string{
		string(e.HeldChange.Ref.UID), refText(e.HeldChange.Ref), e.HeldChange.ComposedResource,
		e.HeldChange.Field,
	}, "\x00")
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
	for i := range s.Input.Objects {
		s.fromList(&s.Input.Objects[i])
	}

	for i := range s.Input.Objects {
		s.fromAnnotation(&s.Input.Objects[i])
	}

	for i := range s.Input.Objects {
		s.fromOutside(&s.Input.Objects[i])
	}
}

// fromOutside adds what somebody has changed of an object's external object. The object itself carries what approves its revert.
func (s *summary) fromOutside(o *Object) {
	ref := RefTo(o.Unstructured)

	for _, h := range managed.DriftEntries(o.Unstructured, s.Input.WithoutDrift) {
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

	s.collection.more += max(list.More, 0)
	parent := RefTo(o.Unstructured)

	for _, e := range list.Changes {
		e.Parent = &parent
		add := &entry{HeldChange: *e.DeepCopy()}
		s.add(add)

		if e.Ref.UID != "" {
			s.collection.fields[fieldOf{e.Ref.UID, e.Field}] = add
		}
	}
}

// add adds an entry, unless one of the same digest is there. That says more: lists come first.
func (s *summary) add(e *entry) {
	was, ok := s.collection.entries[e.identity()]
	if !ok {
		s.collection.entries[e.identity()] = e

		return
	}

	was.askedBy = cmp.Or(was.askedBy, e.askedBy)
	was.HeldChange.Masked = was.HeldChange.Masked || e.HeldChange.Masked

	if was.HeldChange.Cause == nil {
		was.HeldChange.Cause = e.HeldChange.Cause
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
				s.collection.more += n
			}

			continue
		}

		// A record from before there were digests, of what the XR's list says more about.
		if was, ok := s.collection.fields[fieldOf{o.GetUID(), h.Field}]; ok && composed && h.Digest == "" {
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
	e.HeldChange.Ref, e.HeldChange.At, e.HeldChange.Digest, e.HeldChange.Cause = RefTo(o.Unstructured), "", "", s.causeOf(o, user)
	e.HeldChange.Masked = h.From == mask.Text || h.To == mask.Text
	e.HeldChange.Destroys = h.Destroys || Destroys(o.GroupVersionKind().GroupKind(), o.Unstructured, h.Field)

	if o.Parent != nil {
		parent := *o.Parent
		e.HeldChange.Parent, e.HeldChange.Digest = &parent, h.Digest
	}

	if len(h.Follows) == 0 && gated(o) && external(h.Field) {
		e.HeldChange.Follows = []string{management.ActionUpdate}
	}

	if e.HeldChange.Cause.Type == v1alpha1.CauseDrift {
		e.askedBy = user
	}

	return e
}

// gated reports whether a managed resource has a gate, by its annotations alone.
func gated(o *Object) bool {
	return resource.Annotation(o.Unstructured, v1alpha1.AnnotationGate) != "" && !managed.Ungated(o.Unstructured)
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

// hide hides the values of an object in another namespace than the root's: who may read the one
// may not be one who may read the other.
func (s *summary) hide(e *entry) {
	if s.Input.ShowForeign || e.HeldChange.Ref.Namespace == "" || e.HeldChange.Ref.Namespace == s.Input.Root.GetNamespace() {
		return
	}

	for _, v := range []*string{&e.HeldChange.From, &e.HeldChange.To} {
		if *v != "" {
			*v = notShown
		}
	}
}
