// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// AsBefore reports whether the field of an edit has the value last allowed.
func AsBefore(o request.Objects, e v1alpha1.HeldChange) bool {
	if e.Masked {
		return false
	}

	path, _ := request.EditedPath(o.New.Object, e)

	have, there := path.In(o.New.Object)
	if !there {
		return e.From == ""
	}

	is := func(v any) bool {
		text, hash := EditValue(v)

		return e.From != "" && text == e.From && hash == e.Stored.From
	}

	return is(have) || is(change.NewLocator(o.Old.Object, o.New.Object, digest.OfLists).Keys(path)) // Or an order, as its keys.
}

// EditValue is a value as it is recorded, and its digest where that is cut.
func EditValue(v any) (text, hash string) {
	text = change.Text(v, MaxEditValue)

	whole := change.Text(v, int(^uint(0)>>1))
	if whole == text {
		return text, ""
	}

	sum := sha256.Sum256([]byte(whole))

	return text, hex.EncodeToString(sum[:])
}

// MaxEditValue limits the bytes of a value in the record of an edit.
const MaxEditValue = 128

// Unlisted stands for the edits that the record has no room for.
const Unlisted = "(more)"

// recordedEdit completes one edit of an object, and is the change that it was. What the record has no room for has no digest.
func recordedEdit(u *unstructured.Unstructured, e v1alpha1.HeldChange) (v1alpha1.HeldChange, change.Change) {
	path, ok := request.EditedPath(u.Object, e)
	if !ok || e.Field == Unlisted {
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

	if e.To = change.Text(to, MaxEditValue); e.Masked {
		e.To, d.From, d.To = mask.Text, nil, nil
	}

	e.Digest = digest.Of(d)

	return e, c
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
