// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// What is stored is not always what was allowed: a root may have been edited. A
// message that something is held names who stored it.

// askedBy is the user who asks for a change that is held: of what Crossplane passes on
// from a Claim who edited that, for it copies the spec field by field. Empty where
// nobody knows.
func askedBy(o objects, by writer, how manner, above *above, places *places, c change.Change) string {
	if how.Action != "" {
		return "" // A composition function asks for nobody.
	}

	user := by.User.Name

	if by.isCrossplane() {
		i := slices.IndexFunc(above.edited, func(e v1alpha1.HeldChange) bool { return places.withinEdit(c, e) })
		if i < 0 || !resource.BoundToClaim(o.New) {
			return ""
		}

		user = allowance.Author(above.edited[i])
	}

	return change.Text(user, maxEditValue)
}

// StoredBy says who stored a value, and when where that is known.
func StoredBy(user string, since time.Time) string {
	if since.IsZero() {
		return "saved by " + user
	}

	return fmt.Sprintf("saved by %s at %s", user, since.UTC().Format(time.RFC3339))
}

// DescribeStored says what of a root is stored that was not allowed, without why.
func DescribeStored(h v1alpha1.HeldChange) string {
	if h.Field == unlisted {
		return "more fields, which the record has no room for"
	}

	return fmt.Sprintf("%s is %s (last allowed: %s)", h.Field, orUnset(h.To), orUnset(h.From))
}
