// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// writeHeld records what is held and what is stored though nobody allowed it, or that nothing is any more. What cannot be read
// stands for whatever it was.
func writeHeld(in *input.Inputs, j *rule.Judged, t *hold.Taken, object *unstructured.Unstructured) {
	stored, err := allowance.ParseStored(cmp.Or(in.Objects.Old, object))
	if err != nil {
		in.Problems.Add(request.InObject(object, err))

		return
	}

	held, was := t.Records, len(stored)
	if in.Objects.Operation == request.OperationUpdate {
		stored = storedNow(in, j, t.Changes, object, stored)
	}

	if len(held) == 0 && j.Action != v1alpha1.ActionHold && len(j.Findings) == 0 {
		if was == 0 && len(stored) == 0 {
			return // It stays as it is.
		}

		held, _ = allowance.ParseHeld(object) // It is readable, as what is stored is.
	}

	input.Annotate(object, v1alpha1.AnnotationHeld, allowance.FormatHeld(stored, held))
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
	if h.Field == input.Unlisted {
		return "more fields, which the record has no room for"
	}

	return fmt.Sprintf("%s is %s (last allowed: %s)", h.Field, message.OrUnset(h.To), message.OrUnset(h.From))
}
