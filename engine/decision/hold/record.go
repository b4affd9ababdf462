// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// HeldChange is the record of an unallowed change, without what only the
// object's readers may see.
func HeldChange(f finding.Finding) v1alpha1.HeldChange {
	out := v1alpha1.HeldChange{
		Field:   f.Change.Field,
		From:    change.Text(mask.Value(f.Change.Path, f.Change.From, f.Between...), maxHeldValue),
		To:      change.Text(mask.Value(f.Change.Path, f.Change.To, f.Between...), maxHeldValue),
		At:      f.Since.At,
		Missing: change.Text(f.Missing(), maxHeldReason),
	}

	a := f.Approvable()
	out.Digest = a.Digest

	if f.Replaced { // Its field does not say so.
		out.Follows, out.Destroys = a.Follows, true
	}

	return out
}

// HeldBetween is the record of a change that is held for a separate reason,
// between versions of an object.
func HeldBetween(c change.Change, reason string, objects ...map[string]any) v1alpha1.HeldChange {
	out := HeldChange(finding.Finding{Change: c, Between: objects})
	out.Missing = reason

	return out
}

// CauseType is that of a change that a user asks for: an edit of what people edit, or a change by hand of what an XR composes.
func CauseType(o request.Objects) v1alpha1.CauseType {
	if o.Parent != nil && resource.IsComposite(o.Parent) {
		return v1alpha1.CauseDrift
	}

	return v1alpha1.CauseEdit
}

// askedBy is the user who asks for a change that is held: of what Crossplane passes on
// from a Claim who edited that, for it copies the spec field by field. Empty where
// nobody knows.
func askedBy(o request.Objects, by request.Writer, how request.Manner, above *input.Above, places *request.Places, c change.Change) string {
	if how.Caller == request.Function {
		return "" // A composition function asks for nobody.
	}

	user := by.User.Name

	if by.IsCrossplane() {
		i := slices.IndexFunc(above.Edited, func(e v1alpha1.HeldChange) bool { return places.WithinEdit(c, e) })
		if i < 0 || !resource.BoundToClaim(o.New) {
			return ""
		}

		user = allowance.Author(above.Edited[i])
	}

	return change.Text(user, input.MaxEditValue)
}

// maxHeldValue limits the bytes of a value in a held record or a message.
const maxHeldValue = 128

// maxHeldReason limits the bytes of a reason in a held record: it quotes
// expressions, which may be as long as a policy.
const maxHeldReason = 1024
