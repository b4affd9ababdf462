// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// Where nothing is enforced, a root takes what anybody stores, and what follows
// from it is held below. A window lets a controller make changes whatever they
// follow from, and nobody can know which field of a child comes from which of
// its root. So what was stored unallowed is recorded, and windows do not open
// below it.

// recordsEdits reports whether what the user stores unallowed is an edit that is
// remembered: of a root, by somebody else than those who act for Crossplane and
// for us, or of what an XR composes and no gate stands before, by a person. What is
// taken back is none.
func recordsEdits(o request.Objects, by request.Writer, how request.Manner, outside request.External, j *rule.Judged) bool {
	byHand := o.OrdinaryPart() && !by.User.Machine()

	return (o.Root || byHand) && how.Caller != request.Function && j.Action != v1alpha1.ActionHold && !request.Guarded(how, outside) &&
		!request.DeletesForOthers(by.User) &&
		!by.IsProvider() && !by.IsCrossplane() && !by.IsManager()
}

// storedNow is what is stored though nobody allowed it: of what was, without what is taken back or made again by who may, with
// what is new.
func storedNow(
	in *input.Inputs, j *rule.Judged, back []change.Change, object *unstructured.Unstructured, was []v1alpha1.HeldChange,
) []v1alpha1.HeldChange {
	edits := slices.DeleteFunc(slices.Clone(was), func(e v1alpha1.HeldChange) bool { return resolved(in.Objects, in.Places, j, e) })
	for i, e := range edits {
		if path, ok := request.EditedPath(object.Object, e); ok && e.Stored.Where != "" {
			edits[i].Field = path.String()
		}
	}

	if recordsEdits(in.Objects, in.Writer, in.Manner, in.External, j) {
		for _, f := range j.Findings {
			if f.Verdict == finding.Unallowed {
				edits = addEdit(in.Objects, in.Writer, in.Authority, in.Places, in.Earlier, in.Now, j.Changes, back, edits, f)
			}
		}
	}

	// What was left out stands until all the rest is resolved, and who may change
	// the object does.
	if len(edits) == 1 && edits[0].Field == input.Unlisted && j.Initiated() {
		return nil
	}

	return edits
}

// resolved reports whether an edit is no more: its field has the value last allowed,
// or one that is allowed now.
func resolved(o request.Objects, places *request.Places, j *rule.Judged, e v1alpha1.HeldChange) bool {
	if slices.ContainsFunc(j.Findings, func(f finding.Finding) bool {
		return f.Verdict == finding.Allowed && places.SameEdit(f.Change, e)
	}) {
		return true
	}

	return input.AsBefore(o, e)
}

// addEdit adds a change to a record, in a list without keys that of the whole list. What was edited before keeps the value that
// was last allowed.
func addEdit(
	o request.Objects, by request.Writer, auth *authority.Authority, places *request.Places, earlier input.Earlier, now time.Time,
	changes, back []change.Change, edits []v1alpha1.HeldChange,
	f finding.Finding,
) []v1alpha1.HeldChange {
	c, _ := places.OfList(o, f.Change)

	stored := v1alpha1.StoredChange{
		Where: places.WhereOf(c).String(), UID: by.User.UID,
		Groups:    slices.Clone(by.User.Groups[:min(len(by.User.Groups), v1alpha1.MaxStoredGroups)]),
		Approvals: max(f.Approvals(), auth.ApprovalsAsked(f.Change)),
	}
	e := v1alpha1.HeldChange{
		Field: c.Field, Stored: &stored,
		Cause: &v1alpha1.Cause{
			Type: hold.CauseType(o), User: change.Text(by.User.Name, input.MaxEditValue), Since: &metav1.Time{Time: now.UTC()},
		},
		At: allowance.ID(PredictGeneration(o, changes, back), RequestNumber(o, earlier, PredictGeneration(o, changes, back))),
	}

	if e.Masked = mask.Hides(c.Path, c.From, o.Between()...) || mask.Hides(c.Path, c.To, o.Between()...); !e.Masked {
		e.From, stored.From = input.EditValue(c.From)
	}

	same := func(o v1alpha1.HeldChange) bool {
		return o.Stored.Where == stored.Where && (stored.Where != "" || o.Field == e.Field)
	}
	if i := slices.IndexFunc(edits, same); i >= 0 {
		was := edits[i]
		e.From, stored.From, e.Masked, e.Cause.Since, e.At = was.From, was.Stored.From, was.Masked, was.Cause.Since, was.At
		edits[i] = e

		return edits
	}

	if len(edits) >= v1alpha1.MaxStored-1 || len(stored.Where) > request.MaxWhere {
		e.Field, stored.Where, e.From, stored.From, e.Masked = input.Unlisted, "", "", "", true
		if i := slices.IndexFunc(edits, same); i >= 0 {
			stored.Approvals = max(stored.Approvals, edits[i].Stored.Approvals) // It stands for that one, too.
			edits = slices.Delete(edits, i, i+1)
		}
	}

	return append(edits, e)
}
