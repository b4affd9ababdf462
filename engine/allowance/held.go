// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// kausality.io/held has what is stored though nobody allowed it, oldest first, and after that what is held.

// ParseHeld reads what kausality.io/held of an object says is held. Values that the object hides are masked,
// whoever wrote them down.
func ParseHeld(u *unstructured.Unstructured) ([]v1alpha1.HeldChange, error) {
	list, err := parseHeld(u)
	list = slices.DeleteFunc(list, func(h v1alpha1.HeldChange) bool { return h.Stored != nil })

	for i := range list {
		h := &list[i]

		path, err := fieldpath.Parse(h.Field)
		if err != nil {
			continue // Of no field: it has no values.
		}

		for _, v := range []*string{&h.From, &h.To} {
			if *v != "" && mask.Hides(path, *v, u.Object) {
				*v = mask.Text
			}
		}
	}

	return list, err
}

// ParseStored reads what kausality.io/held of an object says is stored though nobody allowed it. Each has a cause.
func ParseStored(u *unstructured.Unstructured) ([]v1alpha1.HeldChange, error) {
	list, err := parseHeld(u)
	list = slices.DeleteFunc(list, func(h v1alpha1.HeldChange) bool { return h.Stored == nil })

	for i := range list {
		if list[i].Cause == nil {
			list[i].Cause = &v1alpha1.Cause{}
		}
	}

	return list, err
}

func parseHeld(u *unstructured.Unstructured) ([]v1alpha1.HeldChange, error) {
	return parseList[v1alpha1.HeldChange](u, v1alpha1.AnnotationHeld)
}

// FormatHeld writes what is stored and what is held; nothing where nothing is.
func FormatHeld(stored, held []v1alpha1.HeldChange) string {
	list := slices.Concat(stored, ListHeld(held))
	if len(list) == 0 {
		return ""
	}

	return FormatList(list)
}

// Author is the user who asked for a change; empty where nobody knows.
func Author(h v1alpha1.HeldChange) string {
	if h.Cause == nil {
		return ""
	}

	return h.Cause.User
}

// StoredSince is when a field was first changed that is stored though nobody allowed it; zero where that is not known.
func StoredSince(h v1alpha1.HeldChange) time.Time {
	if h.Cause == nil || h.Cause.Since == nil {
		return time.Time{}
	}

	return h.Cause.Since.Time
}

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
	return v1alpha1.HeldChange{Field: fmt.Sprintf("%s%d%s", moreStart, n, moreEnd), Missing: "too many to list"}
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
