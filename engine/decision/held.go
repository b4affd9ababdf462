// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// maxHeldValue limits the bytes of a value in a held record or a message.
const maxHeldValue = 128

// maxHeldReason limits the bytes of a reason in a held record: it quotes
// expressions, which may be as long as a policy.
const maxHeldReason = 1024

// HeldChange is the record of an unallowed change, without what only the
// object's readers may see.
func HeldChange(f Finding) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field:  f.Change.Field,
		From:   change.Text(mask.Value(f.Change.Path, f.Change.From, f.between...), maxHeldValue),
		To:     change.Text(mask.Value(f.Change.Path, f.Change.To, f.between...), maxHeldValue),
		Reason: change.Text(f.Missing(), maxHeldReason),
		Digest: f.Approvable().Digest,
		At:     f.since.At,
	}
}

// HeldBetween is the record of a change that is held for a separate reason,
// between versions of an object.
func HeldBetween(c change.Change, reason string, objects ...map[string]any) v1alpha1.HeldChange {
	out := HeldChange(Finding{Change: c, between: objects})
	out.Reason = reason

	return out
}

// writeHeld records what is held, or that nothing is any more.
func (s *stamper) writeHeld() {
	switch {
	case len(s.held) > 0:
		annotate(s.object, v1alpha1.AnnotationHeld, allowance.FormatList(allowance.ListHeld(s.held)))
	case s.action == v1alpha1.ActionHold || len(s.findings) > 0:
		annotate(s.object, v1alpha1.AnnotationHeld, "")
	}
}
