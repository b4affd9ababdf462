// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// EditsBefore returns when the last of the approvals was made that let through what was held
// below a root: what was edited before that is approved, or nothing follows from it. False where
// something is held, or under way, or nothing was approved.
func EditsBefore(status *v1alpha1.PendingChangeStatus, approvals []v1alpha1.ChangeApproval) (time.Time, bool) {
	if (status.Total > 0 || status.FinishedAt == nil) && !onlyDrift(status) {
		return time.Time{}, false
	}

	var last time.Time

	for _, a := range status.Approvals {
		i := slices.IndexFunc(approvals, func(cha v1alpha1.ChangeApproval) bool { return cha.Name == a.Name })
		if a.State != v1alpha1.ApprovalStateApplied || i < 0 {
			continue
		}

		if made := approvals[i].CreationTimestamp.Time; made.After(last) {
			last = made
		}
	}

	return last, !last.IsZero()
}

// onlyDrift reports whether all that is held was changed outside, and nothing that was approved is under way: that follows from no
// edit.
func onlyDrift(status *v1alpha1.PendingChangeStatus) bool {
	return len(status.Changes) > 0 && int(status.Total) == len(status.Changes) &&
		!slices.ContainsFunc(status.Changes, func(e v1alpha1.HeldChange) bool {
			return e.Cause == nil || e.Cause.Type != v1alpha1.CauseDrift || e.Cause.User != ""
		}) &&
		!slices.ContainsFunc(status.Approvals, func(a v1alpha1.PendingApproval) bool { return !a.State.Final() })
}

// EditsLeft are the edits of a root, as it is now, that stay recorded: those that were not there
// when it was found that nothing is held, or were made after the last approval, to the
// second.
func EditsLeft(now, was []v1alpha1.HeldChange, before time.Time) []v1alpha1.HeldChange {
	return slices.DeleteFunc(slices.Clone(now), func(e v1alpha1.HeldChange) bool {
		there := func(w v1alpha1.HeldChange) bool {
			return w.Field == e.Field && allowance.Author(w) == allowance.Author(e)
		}

		return !allowance.StoredSince(e).After(before) && slices.ContainsFunc(was, there)
	})
}
