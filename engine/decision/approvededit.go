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
	// Digest of it, see [RecordedEdits].
	Digest string
	// Initiator is who has approved it.
	Initiator string
	// Hop is the ChangeApproval.
	Hop v1alpha1.Hop
}

// RecordedEdits are the edits that an object records, in order: each with the value that is stored, and the digest that stands for
// exactly this edit of this object from and to these values; without one it cannot be approved. The error is about a record that
// does not parse.
func RecordedEdits(u *unstructured.Unstructured) ([]v1alpha1.HeldChange, error) {
	edits, err := allowance.ParseStored(u)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	for i, e := range edits {
		edits[i], _ = recordedEdit(u, e)
	}

	return edits, nil
}

// recordedEdit completes one edit of an object, and is the change that it was. What the record has no room for has no digest.
func recordedEdit(u *unstructured.Unstructured, e v1alpha1.HeldChange) (v1alpha1.HeldChange, change.Change) {
	path, ok := EditedPath(u.Object, e)
	if !ok || e.Field == unlisted {
		return e, change.Change{}
	}

	to, _ := path.In(u.Object)
	from, known := valueOf(e.From, to)
	c := change.Change{Path: path, Field: path.String(), From: from, To: to}

	d := digest.Change{
		Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update,
		Elements: change.NewLocator(u.Object, u.Object, digest.OfLists).Elements(c),
		From:     []any{e.From, e.Stored.From}, To: to, Masked: e.Masked,
	}

	if !known || e.Stored.From != "" {
		c.From = nil
	}

	if e.To = change.Text(to, maxEditValue); e.Masked {
		e.To, d.From, d.To = mask.Text, nil, nil
	}

	e.Digest = digest.Of(d)

	return e, c
}

// readApproved reads which edits people have approved: these are made once more. Before is the old
// object, of which it takes them back as far as it is known what was there.
func (f *facts) readApproved(edits []v1alpha1.HeldChange, before *unstructured.Unstructured) {
	for _, e := range edits {
		is, made := recordedEdit(f.Old, e)

		for _, a := range f.Approved {
			if is.Digest == "" || a.Digest != is.Digest {
				continue
			}

			if !e.Masked && e.Stored.From == "" {
				setField(before, made.Path, made.From)
			}

			f.repeated, f.unedited = append(f.repeated, made), before
			f.approvedEdits = append(f.approvedEdits, approvedEdit{ApprovedEdit: a, field: made.Field})

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
