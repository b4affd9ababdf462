// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// The entry that stands for those that are left out is written as a field, for
// readers that know no other: (12 more).
const (
	moreStart = "("
	moreEnd   = " more)"
)

// ListHeld is as much of what is held as one object carries: the first, within
// [v1alpha1.MaxHeldEntries] and [v1alpha1.MaxHeldBytes], and last how many more.
// What an earlier list left out counts on.
func ListHeld(held []v1alpha1.HeldChange) []v1alpha1.HeldChange {
	more := 0
	out := make([]v1alpha1.HeldChange, 0, len(held))

	for _, h := range held {
		if n, ok := MoreHeld(h); ok {
			more += n
		} else {
			out = append(out, h)
		}
	}

	if fit := fitting(out, more > 0); fit < len(out) {
		more += len(out) - fit
		out = out[:fit]
	}

	if more > 0 {
		out = append(slices.Clip(out), leftOut(more))
	}

	return out
}

// fitting is how many entries fit. Where not all do, or more are left out
// anyhow, there is room for the entry that says so.
func fitting(held []v1alpha1.HeldChange, more bool) int {
	if !more && len(held) <= v1alpha1.MaxHeldEntries && len(FormatList(held)) <= v1alpha1.MaxHeldBytes {
		return len(held)
	}

	left := v1alpha1.MaxHeldBytes - len(FormatList([]v1alpha1.HeldChange{leftOut(v1alpha1.MaxHeldBytes)}))

	for i, h := range held {
		left -= len(FormatList([]v1alpha1.HeldChange{h}))
		if left < 0 || i == v1alpha1.MaxHeldEntries-1 {
			return i
		}
	}

	return len(held)
}

func leftOut(n int) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Field: fmt.Sprintf("%s%d%s", moreStart, n, moreEnd), Reason: "too many to list"}
}

// MoreHeld reports whether an entry stands for others that are left out, and how
// many.
func MoreHeld(h v1alpha1.HeldChange) (n int, ok bool) {
	text, ok := strings.CutPrefix(h.Field, moreStart)
	if !ok {
		return 0, false
	}

	text, ok = strings.CutSuffix(text, moreEnd)
	if !ok {
		return 0, false
	}

	n, err := strconv.Atoi(text)

	return n, err == nil && n > 0
}
