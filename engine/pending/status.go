// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Input is what a status follows from.
type Input struct {
	// Root is the object that people edit.
	Root *unstructured.Unstructured
	// Objects are all that were read, in any order: the root, what is below it, and each
	// one's parent.
	Objects []Object
	// Gone are those of which it is known that they are not there any more.
	Gone map[Key]bool
	// Previous is the status before.
	Previous v1alpha1.PendingChangeStatus
	// WithoutDrift are kinds of which drift is not looked for.
	WithoutDrift management.Kinds
	// ShowForeign shows the values of objects in other namespaces than the root's, too.
	ShowForeign bool
	// Now is the time, of which no more than seconds count.
	Now time.Time
}

// summary is an input, and what is found in it.
type summary struct {
	Input      Input
	collection collection

	now metav1.Time
	// edits of the root that nobody allowed, the newest last.
	edits []v1alpha1.HeldChange
	// composites are the XRs that were read, listed those of which the list is known, behind
	// those whose list is of an earlier generation, and read all objects.
	composites, listed, behind map[types.UID]bool
	read                       map[Key]*Object
	// lost are the XRs of which the list is not known any more.
	lost map[Key]bool
	// before are the entries of the status before.
	before map[string]*v1alpha1.HeldChange
}

// Status is what is held below a root: all but what approvals make of it, which stays as it was.
// FinishedAt is set where nothing is held.
func Status(in Input) v1alpha1.PendingChangeStatus {
	// 1. Read what was found.
	s := newSummary(in)
	refused := s.refusals()
	s.collect()
	s.fromEdits(refused)

	// 2. What is not known keeps.
	s.keep()

	for _, e := range s.collection.entries {
		s.explain(e)
	}

	// 3. Bring it into order, and into its size.
	list := s.sorted()
	total := len(list) + s.collection.more

	if len(s.lost) > 0 || len(s.behind) > 0 { // So is what was counted only.
		total = max(total, len(list)+int(in.Previous.Total)-len(in.Previous.Changes))
	}

	list = fit(list)

	out := v1alpha1.PendingChangeStatus{
		Total: int32(min(total, math.MaxInt32)), Changes: list, //nolint:gosec // It fits.
		Approvals: in.Previous.DeepCopy().Approvals, Refused: refused,
	}
	out.Requesters, out.Required = s.requesters()

	digests := make([]string, 0, len(list))

	for i := range list {
		digests = append(digests, list[i].Digest)

		if list[i].Destroys {
			out.Destroys++
		}
	}

	if len(digests) > 0 {
		out.Digest = digest.OfList(digests)
	}

	out.Conditions = s.conditions()

	if total == 0 {
		out.FinishedAt = &s.now
		if at := in.Previous.FinishedAt; at != nil {
			out.FinishedAt = at.DeepCopy()
		}
	}

	return out
}

func newSummary(in Input) *summary {
	s := &summary{
		Input: in, collection: collection{entries: map[string]*entry{}, fields: map[fieldOf]*entry{}},
		now:        metav1.NewTime(in.Now.UTC().Truncate(time.Second)),
		composites: map[types.UID]bool{}, listed: map[types.UID]bool{}, behind: map[types.UID]bool{}, read: map[Key]*Object{},
		lost: map[Key]bool{}, before: map[string]*v1alpha1.HeldChange{},
	}

	edits, err := allowance.ParseStored(in.Root)
	if err != nil { // It is reported where it is written next, and stands for whatever it was.
		edits = []v1alpha1.HeldChange{{Field: unlisted, Cause: &v1alpha1.Cause{User: Unknown}, Stored: &v1alpha1.StoredChange{}}}
	}

	s.edits = edits
	sortEdits(s.edits)

	// In their order, so that nothing follows from that in which they were read.
	s.Input.Objects = sortObjects(in.Objects)

	for i := range s.Input.Objects {
		o := &s.Input.Objects[i]
		s.read[KeyOfObject(o.Unstructured)] = o
		s.composites[o.GetUID()] = resource.IsComposite(o.Unstructured)
	}

	for i := range in.Previous.Changes {
		e := &in.Previous.Changes[i]
		s.before[(&entry{HeldChange: *e}).identity()] = e
	}

	return s
}
