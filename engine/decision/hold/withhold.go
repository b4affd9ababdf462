// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Withhold notes on each finding that is held since when it is, and what is withheld now.
func Withhold(in *input.Inputs, j *rule.Judged, t *Taken) {
	if j.Action != v1alpha1.ActionHold || in.Objects.Parent == nil {
		return
	}

	var holds []allowance.Hold

	for _, f := range j.Findings {
		if f.Verdict == finding.Unallowed {
			holds = append(holds, allowance.Hold{
				Place: in.Places.HeldPlace(in.Objects, f.Change), Repair: input.StoredByHand(in.Objects, in.Places, in.Desired, f.Change),
			})
		}
	}

	if len(holds) == 0 {
		return
	}

	t.Places = in.Above.Withheld.Next(holds, input.SinceNow(in.Objects, in.Manner, in.Above), in.Above.UnknownCause)
	stored := input.StoredFields(in.Above)

	for i, f := range j.Findings {
		if f.Verdict != finding.Unallowed {
			continue
		}

		since, known := input.HeldSince(in.Objects, in.Above, in.Places, f.Change)
		if next, _ := t.Places.At(in.Places.HeldPlace(in.Objects, f.Change)); !known || next.Repair() {
			since = next
		}

		j.Findings[i].Since, j.Findings[i].Stored = since, stored

		for n := range t.Records {
			if t.Records[n].Field == f.Change.Field {
				t.Records[n].At = since.At
			}
		}
	}
}

// WriteWithheld records what is withheld. A user asks once, and nothing is held of that any more. Of what else writes, only the
// writer that asked for what is held shows that it does so no more: by a write without it, after another change of the parent. Within
// one change, that may be our answer to it, about which the API server has asked once more.
func WriteWithheld(
	in *input.Inputs, action v1alpha1.ValidationAction, now allowance.Withheld, object *unstructured.Unstructured,
	rec *v1alpha1.ObjectRecord,
) {
	if in.Above.Unreadable || in.Objects.Operation != request.OperationUpdate || in.Objects.Parent == nil {
		return
	}

	next, _ := allowance.ReadWithheld(rec.Withheld) // It is readable.
	if len(next) > 0 {
		next = next.Without(input.StoredPlaces(in.Objects, in.Places, object))
	}

	if action == v1alpha1.ActionHold && in.Manner.Caller != request.Function && input.AsksForParent(in.Objects, in.Writer) {
		next = asksNow(in.Objects, in.Writer, now, rec, next)
	}

	if len(next) == 0 {
		rec.Withheld, rec.Asked = nil, v1alpha1.Asker{}
	} else if record := next.Record(); !slices.EqualFunc(rec.Withheld, record, sameWithheld) {
		rec.Withheld = record
	}
}

// asksNow is what is withheld after a write of what carries on what the parent asks for.
func asksNow(
	o request.Objects, by request.Writer, held allowance.Withheld, rec *v1alpha1.ObjectRecord, had allowance.Withheld,
) allowance.Withheld {
	now := v1alpha1.Asker{By: fmt.Sprintf("%08x", wish.Hash(by.User.Name+"\x00"+by.FieldManager)>>request.HalfOfHash), At: o.LastOfParent()}

	if answeredHeld(o) { // It is no change any more.
		given, _ := allowance.ParseRecord(o.Asked) // Made up, if it does not parse.
		answered, _ := allowance.ReadWithheld(given.Withheld)
		had = had.With(answered)

		if len(answered) > 0 {
			rec.Asked = now
		}
	}

	was := rec.Asked
	if len(held) > 0 {
		rec.Asked = now
	}

	if was.By == now.By && was.At != now.At {
		return held
	}

	return had.With(held)
}

func sameWithheld(a, b v1alpha1.WithheldPlaces) bool {
	return a.At == b.At && a.Edited == b.Edited && a.Places == b.Places && slices.Equal(a.Of, b.Of)
}
