// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Where nothing is enforced, a root takes what anybody stores, and what follows
// from it is held below. A window lets a controller make changes whatever they
// follow from, and nobody can know which field of a child comes from which of
// its root. So what was stored unallowed is recorded, and windows do not open
// below it.

// maxEditValue limits the bytes of a value in the record of an edit.
const maxEditValue = 128

// unlisted stands for the edits that the record has no room for.
const unlisted = "(more)"

// recordsEdits reports whether what the user stores unallowed is an edit that is
// remembered: of a root, by somebody else than those who act for Crossplane and
// for us, or of what an XR composes and no gate stands before, by a person. What is
// taken back is none.
func recordsEdits(o objects, by writer, how manner, outside outside, j *judged) bool {
	byHand := o.ordinaryPart() && !by.User.Machine()

	return (o.Root || byHand) && how.Action == "" && j.action != v1alpha1.ActionHold && !guarded(how, outside) && !deletesForOthers(by.User) &&
		!by.isProvider() && !by.isCrossplane() && !by.isManager()
}

// RecordsEdits reports whether of each change of a root's spec something tells where the webhook is asked:
// its trace, or the record of edits. It does not where no policy says who may change such objects, but for XRs
// of Claims: what Crossplane passes on to these is held or traced by any policy about them. Nor does it where
// an Enforcement about the root's resource leaves fields alone that no policy names.
func (b Basis) RecordsEdits(root *unstructured.Unstructured, gr schema.GroupResource) bool {
	gk := root.GroupVersionKind().GroupKind()

	return (b.Policies.Governs(gk) || resource.BoundToClaim(root) && len(b.Policies.For(gk)) > 0) &&
		!slices.ContainsFunc(b.Enforcements, func(e *enforcement.Enforcement) bool { return e.IgnoresUnnamed() && e.Covers(gr) })
}

// storedNow is what is stored though nobody allowed it: of what was, without what is taken back or made again by who may, with
// what is new.
func storedNow(in *inputs, j *judged, object *unstructured.Unstructured, was []v1alpha1.HeldChange) []v1alpha1.HeldChange {
	edits := slices.DeleteFunc(slices.Clone(was), func(e v1alpha1.HeldChange) bool { return resolved(in.o, in.places, j, e) })
	for i, e := range edits {
		if path, ok := EditedPath(object.Object, e); ok && e.Stored.Where != "" {
			edits[i].Field = path.String()
		}
	}

	if recordsEdits(in.o, in.by, in.how, in.outside, j) {
		for _, f := range j.findings {
			if f.Verdict == Unallowed {
				edits = addEdit(in.o, in.by, in.auth, in.places, in.earlier, in.now, j, edits, f)
			}
		}
	}

	// What was left out stands until all the rest is resolved, and who may change
	// the object does.
	if len(edits) == 1 && edits[0].Field == unlisted && j.initiated() {
		return nil
	}

	return edits
}

// resolved reports whether an edit is no more: its field has the value last allowed,
// or one that is allowed now.
func resolved(o objects, places *places, j *judged, e v1alpha1.HeldChange) bool {
	if slices.ContainsFunc(j.findings, func(f Finding) bool {
		return f.Verdict == Allowed && places.sameEdit(f.Change, e)
	}) {
		return true
	}

	return asBefore(o, e)
}

// asBefore reports whether the field of an edit has the value last allowed.
func asBefore(o objects, e v1alpha1.HeldChange) bool {
	if e.Masked {
		return false
	}

	path, _ := EditedPath(o.New.Object, e)

	have, there := path.In(o.New.Object)
	if !there {
		return e.From == ""
	}

	is := func(v any) bool {
		text, hash := editValue(v)

		return e.From != "" && text == e.From && hash == e.Stored.From
	}

	return is(have) || is(change.NewLocator(o.Old.Object, o.New.Object, digest.OfLists).Keys(path)) // Or an order, as its keys.
}

// addEdit adds a change to a record, in a list without keys that of the whole list. What was edited before keeps the value that
// was last allowed.
func addEdit(
	o objects, by writer, auth *authority, places *places, earlier earlier, now time.Time, j *judged, edits []v1alpha1.HeldChange,
	f Finding,
) []v1alpha1.HeldChange {
	c, _ := places.ofList(o, f.Change)

	stored := v1alpha1.StoredChange{
		Where: places.whereOf(c).String(), UID: by.User.UID,
		Groups:    slices.Clone(by.User.Groups[:min(len(by.User.Groups), v1alpha1.MaxStoredGroups)]),
		Approvals: max(f.approvals(), auth.approvalsAsked(f.Change)),
	}
	e := v1alpha1.HeldChange{
		Field: c.Field, Stored: &stored,
		Cause: &v1alpha1.Cause{Type: causeType(o), User: change.Text(by.User.Name, maxEditValue), Since: &metav1.Time{Time: now.UTC()}},
		At:    allowance.ID(predictGeneration(o, j.changes, j.back), requestNumber(o, earlier, predictGeneration(o, j.changes, j.back))),
	}

	if e.Masked = mask.Hides(c.Path, c.From, o.between()...) || mask.Hides(c.Path, c.To, o.between()...); !e.Masked {
		e.From, stored.From = editValue(c.From)
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

	if len(edits) >= v1alpha1.MaxStored-1 || len(stored.Where) > maxWhere {
		e.Field, stored.Where, e.From, stored.From, e.Masked = unlisted, "", "", "", true
		if i := slices.IndexFunc(edits, same); i >= 0 {
			stored.Approvals = max(stored.Approvals, edits[i].Stored.Approvals) // It stands for that one, too.
			edits = slices.Delete(edits, i, i+1)
		}
	}

	return append(edits, e)
}

// editValue is a value as it is recorded, and its digest where that is cut.
func editValue(v any) (text, hash string) {
	text = change.Text(v, maxEditValue)

	whole := change.Text(v, int(^uint(0)>>1))
	if whole == text {
		return text, ""
	}

	sum := sha256.Sum256([]byte(whole))

	return text, hex.EncodeToString(sum[:])
}

// lackingByHand says who stored by hand what a change of a part of an XR would
// replace.
func lackingByHand(o objects, c change.Change) []Lack {
	if o.Operation != OperationUpdate || !o.ordinaryPart() {
		return nil
	}

	edits, err := allowance.ParseStored(o.Old)
	if err != nil {
		return nil // Reported when they are written.
	}

	for _, e := range edits {
		if e.Field == c.Field {
			text := fmt.Sprintf("%s changed it by hand at %s", allowance.Author(e), allowance.StoredSince(e).UTC().Format(time.RFC3339))

			return []Lack{{What: policy.LackEdited, Text: text, Fix: "anyone may revert that"}}
		}
	}

	return nil
}

// lackingEdits says what of the parent was edited by whom, and that this prevents
// a window from allowing a change that one is about.
func lackingEdits(o objects, policies *policy.Set, above *above, windows windows, c change.Change) []Lack {
	edits := above.edited
	if len(edits) == 0 {
		return nil
	}

	parts := make([]string, 0, len(edits))
	for _, e := range edits[:min(len(edits), maxRefused)] {
		part := fmt.Sprintf("%s's edit of %s", allowance.Author(e), e.Field)

		switch {
		case mayBegin(o, policies, e):
			part += " (now permitted: save it again)"
		case e.Stored.Approvals > 0:
			part += fmt.Sprintf(" (needs the approval of %s)", others(e.Stored.Approvals))
		}

		parts = append(parts, part)
	}

	edited := strings.Join(parts, ", ")
	name, _, _ := strings.Cut(allowance.Author(edits[0]), "@")
	short := fmt.Sprintf("from %s's edit of %s", name, edits[0].Field)

	window := windows.windowFor(o, c)
	if window == nil {
		return []Lack{{What: policy.LackEdited, Text: "from " + edited, Short: short}}
	}

	return []Lack{{
		Policy: window.GetName(), What: policy.LackEdited, Text: fmt.Sprintf(
			"UpgradeAllowance %q does not apply because of %s", window.GetName(), edited),
		Fix:   "revert the edit, or ask someone with permission to make it",
		Short: fmt.Sprintf("UpgradeAllowance %q does not apply", window.GetName()),
	}}
}

// mayBegin reports whether who made an edit of the parent is one who may initiate it, as
// policies are now.
func mayBegin(o objects, policies *policy.Set, e v1alpha1.HeldChange) bool {
	path, err := fieldpath.Parse(e.Field)
	if err != nil {
		return false
	}

	c := change.Change{Path: path, Field: e.Field}
	user := policy.User{Name: allowance.Author(e), UID: e.Stored.UID, Groups: e.Stored.Groups}

	return slices.ContainsFunc(policies.For(o.Parent.GroupVersionKind().GroupKind()), func(p *policy.Policy) bool {
		return p.RequiredApprovals() == 0 && p.Covers(c) && !p.RequiresBinding() && policy.MayInitiate(p.Spec().Subjects, user)
	})
}
