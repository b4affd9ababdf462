// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

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

// readApproved reads which edits people have approved: these are made once more. Before them is the old
// object, as far as it is known what was there.
func readApproved(old *unstructured.Unstructured, edits []v1alpha1.HeldChange, approved []ApprovedEdit) earlier {
	var out earlier

	before := old.DeepCopy()

	for _, e := range edits {
		is, made := recordedEdit(old, e)

		i := slices.IndexFunc(approved, func(a ApprovedEdit) bool { return is.Digest != "" && a.Digest == is.Digest })
		if i < 0 {
			continue
		}

		if !e.Masked && e.Stored.From == "" {
			setField(before, made.Path, made.From)
		}

		out.repeated, out.before = append(out.repeated, made), before
		out.approved = append(out.approved, approvedEdit{approved[i], made.Field})
	}

	return out
}

// approvedEdit is one by its field.
type approvedEdit struct {
	edit  ApprovedEdit
	field string
}
