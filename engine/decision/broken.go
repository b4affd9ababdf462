// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// byBroken refuses a change that an Enforcement governs which cannot be
// evaluated, as its failure policy says. Who deletes what others have deleted is
// let through, as ever.
func (d *decider) byBroken(c change.Change) (Finding, bool) {
	if d.Action != "" || exempt(d.User) {
		return Finding{}, false
	}

	f := d.lacking(c, nil)

	for _, e := range d.governing {
		if e.Refuses() {
			f.Lacks = append(f.Lacks, Lack{What: policy.LackEnforcement, Text: fmt.Sprintf(
				"Enforcement %q does not compile at %s, and its failurePolicy is Fail: mend it, set its failurePolicy to Ignore, or delete it",
				e.Name(), strings.Join(e.Broken(), ", "))})
		}
	}

	return f, len(f.Lacks) > 0
}

// actionOf is what an Enforcement has done about unallowed changes.
func actionOf(e *enforcement.Enforcement) v1alpha1.ValidationAction {
	if e.Refuses() {
		return v1alpha1.ActionDeny
	}

	return e.Action()
}

// refusedAs starts the message of a refusal: whether anybody asked for what an
// Enforcement refuses that cannot be evaluated, nobody has looked.
func refusedAs(findings []Finding) string {
	for _, f := range findings {
		if slices.ContainsFunc(f.Lacks, func(l Lack) bool { return l.What == policy.LackEnforcement }) {
			return "this change cannot be judged: "
		}
	}

	return "nobody asked for this change: "
}
