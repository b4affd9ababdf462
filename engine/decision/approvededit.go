// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// An edit of a root that nobody allowed is stored, and what its controller makes of that is many
// writes, one after the other, each of another value: a rollout. Where these are refused, nothing
// of them is stored that somebody could approve. So people approve the edit: it is allowed then
// as if somebody had made it who may, and what follows goes by policy.

// ApprovedEdit is an edit that an object records, and that people have approved.
type ApprovedEdit struct {
	// Digest of it, see [RecordedEdit].
	Digest string
	// Initiator is who has approved it.
	Initiator string
	// Hop is the ChangeApproval.
	Hop v1alpha1.Hop
}

// RecordedEdit is an edit that an object records.
type RecordedEdit struct {
	v1alpha1.Edit

	// To is the value that is stored, as text, cut where long; masked for a credential.
	To string
	// Digest stands for exactly this edit of this object from and to these values. Empty where it
	// cannot be approved.
	Digest string

	change change.Change
}

// RecordedEdits are the edits that an object records, in order. The error is about a record that does
// not parse.
func RecordedEdits(u *unstructured.Unstructured) ([]RecordedEdit, error) {
	edits, err := allowance.ParseEdits(u)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	out := make([]RecordedEdit, 0, len(edits))
	for _, e := range edits {
		out = append(out, recordedEdit(u, e))
	}

	return out, nil
}

// recordedEdit is one of an object. What the record has no room for has no digest.
func recordedEdit(u *unstructured.Unstructured, e v1alpha1.Edit) RecordedEdit {
	out := RecordedEdit{Edit: e}

	path, ok := EditedPath(u.Object, e)
	if !ok || e.Field == unlisted {
		return out
	}

	to, _ := path.In(u.Object)
	from, known := valueOf(e.From, to)
	out.change = change.Change{Path: path, Field: path.String(), From: from, To: to}

	d := digest.Change{
		Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update,
		Elements: change.NewLocator(u.Object, u.Object, digest.OfLists).Elements(out.change),
		From:     []any{e.From, e.Digest}, To: to, Masked: e.Masked,
	}

	if !known || e.Digest != "" {
		out.change.From = nil
	}

	if out.To = change.Text(to, maxEditValue); e.Masked {
		out.To, d.From, d.To = mask.Text, nil, nil
	}

	out.Digest = digest.Of(d)

	return out
}

// readApproved reads which edits people have approved: these are made once more. Before is the old
// object, of which it takes them back as far as it is known what was there.
func (f *facts) readApproved(edits []v1alpha1.Edit, before *unstructured.Unstructured) {
	for _, e := range edits {
		is := recordedEdit(f.Old, e)

		for _, a := range f.Approved {
			if is.Digest == "" || a.Digest != is.Digest {
				continue
			}

			if !e.Masked && e.Digest == "" {
				setField(before, is.change.Path, is.change.From)
			}

			f.repeated, f.unedited = append(f.repeated, is.change), before
			f.approvedEdits = append(f.approvedEdits, approvedEdit{ApprovedEdit: a, field: is.change.Field})

			break
		}
	}
}

// approvedEdit is one by its field.
type approvedEdit struct {
	ApprovedEdit

	field string
}

// byApproval allows an edit that people have approved.
func (j *judge) byApproval(c change.Change) (Finding, bool) {
	for _, a := range j.approvedEdits {
		if a.field == c.Field {
			return Finding{Digest: a.Digest, cause: cause{
				initiator: a.Initiator, trace: []v1alpha1.Hop{a.Hop}, propagated: true,
			}}, true
		}
	}

	return Finding{}, false
}
