// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Above is what the parent carries, and the objects of what they have used of it.
type Above struct {
	// Allowances that it carries.
	Allowances []v1alpha1.Allowance
	// Edited are the edits that it carries. A record that cannot be read names some.
	Edited []v1alpha1.HeldChange
	// changed are fields of it that somebody has changed of late, by whatever else shows that; nil where nothing does.
	changed func() []string
	// UnknownCause is true where what is asked for may follow from another revision of its Composition.
	UnknownCause bool
	// Withheld are the places at which changes of the object are held.
	Withheld allowance.Withheld
	// Unreadable is true where a record of that is not understood: then any change of it is held.
	Unreadable bool
	// records of objects, once they were read; reported is how far its function has reported approvals to be, likewise.
	records  map[*unstructured.Unstructured]v1alpha1.ObjectRecord
	reported *Reported
}

// readAbove reads what the parent allows, and what was edited of it; what does not
// parse is reported and allows nothing.
func readAbove(req *request.Request, parent *unstructured.Unstructured, problems *request.Problems) *Above {
	out := &Above{changed: req.Edited, UnknownCause: req.UnknownCause}
	if parent == nil {
		return out
	}

	var err error
	if out.Allowances, err = allowance.Parse(parent); err != nil {
		out.Allowances = nil
		problems.Add(request.InObject(parent, err))
	}

	if out.Edited, err = allowance.ParseStored(parent); err != nil {
		out.Edited = []v1alpha1.HeldChange{{
			Field: "(unreadable)", Cause: &v1alpha1.Cause{User: authority.UnreadableUser},
			Stored: &v1alpha1.StoredChange{},
		}}
	}

	return out
}

// RecordOf is what an object has of allowances that it used, which is read once: it is asked for with each change and
// allowance.
func (above *Above) RecordOf(u *unstructured.Unstructured) v1alpha1.ObjectRecord {
	if u == nil {
		return v1alpha1.ObjectRecord{}
	}

	rec, known := above.records[u]
	if !known {
		rec, _ = allowance.ParseRecord(u) // What does not parse is reported when it is written.

		if above.records == nil {
			above.records = map[*unstructured.Unstructured]v1alpha1.ObjectRecord{}
		}

		above.records[u] = rec
	}

	return rec
}

// Reported is what the composition function of an XR has reported of the allowances of
// approvals that the XR carries.
type Reported struct {
	states map[reportedUse]v1alpha1.ApprovalUseState
}

// reportedUse is an approval of a change.
type reportedUse struct{ approval, digest string }

// ReadReported reads what an XR shows of it. Of what is none nothing is reported.
func ReadReported(xr *unstructured.Unstructured) *Reported {
	out := &Reported{}

	list, ok := resource.StateOf(xr)
	if !ok {
		return out
	}

	out.states = make(map[reportedUse]v1alpha1.ApprovalUseState, len(list.Approvals))

	for _, use := range list.Approvals {
		out.states[reportedUse{use.Approval, use.Digest}] = use.State
	}

	return out
}

// Used reports whether an allowance of an approval has served.
func (r *Reported) Used(a v1alpha1.Allowance) bool {
	return r.states[reportedUse{a.Approval, a.Digest}] == v1alpha1.ApprovalUsed
}

// Reports is what the function of the parent has reported, which is read once.
func (above *Above) Reports(o request.Objects) *Reported {
	if above.reported == nil {
		above.reported = ReadReported(o.Parent)
	}

	return above.reported
}
