// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxHeldValue limits the bytes of a value in a held record or a message.
const maxHeldValue = 128

// maxHeldReason limits the bytes of a reason in a held record: it quotes
// expressions, which may be as long as a policy.
const maxHeldReason = 1024

// HeldChange is the record of an unallowed change, without what only the
// object's readers may see.
func HeldChange(f Finding) v1alpha1.HeldChange {
	out := v1alpha1.HeldChange{
		Field:   f.Change.Field,
		From:    change.Text(mask.Value(f.Change.Path, f.Change.From, f.between...), maxHeldValue),
		To:      change.Text(mask.Value(f.Change.Path, f.Change.To, f.between...), maxHeldValue),
		At:      f.since.At,
		Missing: change.Text(f.Missing(), maxHeldReason),
	}

	a := f.Approvable()
	out.Digest = a.Digest

	if f.replaced { // Its field does not say so.
		out.Follows, out.Destroys = a.Follows, true
	}

	return out
}

// HeldBetween is the record of a change that is held for a separate reason,
// between versions of an object.
func HeldBetween(c change.Change, reason string, objects ...map[string]any) v1alpha1.HeldChange {
	out := HeldChange(Finding{Change: c, between: objects})
	out.Missing = reason

	return out
}

// causeType is that of a change that a user asks for: an edit of what people edit, or a change by hand of what an XR composes.
func causeType(o objects) v1alpha1.CauseType {
	if o.Parent != nil && resource.IsComposite(o.Parent) {
		return v1alpha1.CauseDrift
	}

	return v1alpha1.CauseEdit
}

// writeHeld records what is held and what is stored though nobody allowed it, or that nothing is any more. What cannot be read
// stands for whatever it was.
func writeHeld(in *inputs, j *judged, object *unstructured.Unstructured) {
	stored, err := allowance.ParseStored(cmp.Or(in.o.Old, object))
	if err != nil {
		in.problems.add(inObject(object, err))

		return
	}

	held, was := j.held, len(stored)
	if in.o.Operation == OperationUpdate {
		stored = storedNow(in, j, object, stored)
	}

	if len(held) == 0 && j.action != v1alpha1.ActionHold && len(j.findings) == 0 {
		if was == 0 && len(stored) == 0 {
			return // It stays as it is.
		}

		held, _ = allowance.ParseHeld(object) // It is readable, as what is stored is.
	}

	annotate(object, v1alpha1.AnnotationHeld, allowance.FormatHeld(stored, held))
}

// HeldNow are the held changes with their fields. The others were listed when they were held first, and are a number here.
func (d *Decision) HeldNow() []v1alpha1.HeldChange {
	return slices.DeleteFunc(slices.Clone(d.Held), func(h v1alpha1.HeldChange) bool {
		_, more := allowance.MoreHeld(h)

		return more
	})
}

// DescribeHeld says in at most so many characters what is held; of one change also why, where there is room.
func (d *Decision) DescribeHeld(most int) string {
	list := d.HeldNow()
	texts := make([]string, len(list))

	for i, h := range list {
		texts[i] = Describe(h)
	}

	const one, more = "change held: ", "changes held: "

	if len(list) != 1 {
		return more + message.Join(texts, most-len(more))
	}

	why := []string{list[0].Missing}
	if i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Verdict == Unallowed && f.Change.Field == list[0].Field }); i >= 0 {
		why = d.Findings[i].Why()
	}

	return message.Cut(one+texts[0]+": "+strings.Join(why, "; "), most)
}
