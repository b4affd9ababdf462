// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// above is what the parent carries, and the objects of what they have used of it.
type above struct {
	// allowances that it carries.
	allowances []v1alpha1.Allowance
	// edited are the edits that it carries. A record that cannot be read names some.
	edited []v1alpha1.HeldChange
	// changed are fields of it that somebody has changed of late, by whatever else shows that; nil where nothing does.
	changed func() []string
	// unknownCause is true where what is asked for may follow from another revision of its Composition.
	unknownCause bool
	// withheld are the places at which changes of the object are held.
	withheld allowance.Withheld
	// unreadable is true where a record of that is not understood: then any change of it is held.
	unreadable bool
	// records of objects, once they were read; reported is how far its function has reported approvals to be, likewise.
	records  map[*unstructured.Unstructured]v1alpha1.ObjectRecord
	reported *Reported
}

// readAbove reads what the parent allows, and what was edited of it; what does not
// parse is reported and allows nothing.
func readAbove(req *Request, parent *unstructured.Unstructured, problems *problems) *above {
	out := &above{changed: req.Edited, unknownCause: req.UnknownCause}
	if parent == nil {
		return out
	}

	var err error
	if out.allowances, err = allowance.Parse(parent); err != nil {
		out.allowances = nil
		problems.add(inObject(parent, err))
	}

	if out.edited, err = allowance.ParseStored(parent); err != nil {
		out.edited = []v1alpha1.HeldChange{{
			Field: "(unreadable)", Cause: &v1alpha1.Cause{User: unreadableUser},
			Stored: &v1alpha1.StoredChange{},
		}}
	}

	return out
}

// recordOf is what an object has of allowances that it used, which is read once: it is asked for with each change and
// allowance.
func (above *above) recordOf(u *unstructured.Unstructured) v1alpha1.ObjectRecord {
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
