// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Grace is how long what is on its way may take before it counts.
const Grace = 5 * time.Minute

// Edited judges what is stored of an object that somebody might not store, by its
// record of that: roots have one, and what an XR composes without a gate.
func Edited(u *unstructured.Unstructured) []Finding {
	edits, err := allowance.ParseStored(u)
	if err != nil || len(edits) == 0 { // See [Misread].
		return nil
	}

	texts := make([]string, len(edits))
	first := allowance.StoredSince(edits[0])

	for i, e := range edits {
		by := stamp.StoredBy(allowance.Author(e), allowance.StoredSince(e))
		texts[i] = fmt.Sprintf("%s was %s, and was %s", e.Field, by, lastAllowed(u, e))

		if allowance.StoredSince(e).Before(first) {
			first = allowance.StoredSince(e)
		}
	}

	return []Finding{newFinding(NotAllowed, RefOf(u), joined(texts),
		"take it back, or have it stored again by who may: kubectl kausality trace "+resource.Argument(u)+" says which").since(first)}
}

// lastAllowed is the value last allowed, as it is shown: earlier versions of Kausality recorded
// credentials, too.
func lastAllowed(u *unstructured.Unstructured, e v1alpha1.HeldChange) string {
	path, err := fieldpath.Parse(e.Field)

	switch {
	case e.Masked || e.From != "" && err == nil && mask.Hides(path, e.From, u.Object):
		return mask.Text
	case e.From == "":
		return message.Unset
	default:
		return e.From
	}
}

// Misread judges the records of an object that are not understood.
func Misread(u *unstructured.Unstructured) []Finding {
	list := request.NotUnderstood(u)
	if len(list) == 0 {
		return nil
	}

	texts, keys := make([]string, 0, len(list)), make([]string, 0, len(list))
	for _, m := range list {
		texts, keys = append(texts, m.Err.Error()), append(keys, m.Key+"-")
	}

	f := newFinding(RecordBroken, RefOf(u), strings.Join(texts, "; "),
		"see what it says, then remove it: kubectl annotate "+resource.Argument(u)+" "+strings.Join(keys, " "))
	f.Why = "it allows nothing, and its gate does not open"

	return []Finding{f}
}
