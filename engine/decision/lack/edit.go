// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package lack

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// lackingByHand says who stored by hand what a change of a part of an XR would
// replace.
func lackingByHand(o request.Objects, c change.Change) []finding.Lack {
	if o.Operation != request.OperationUpdate || !o.OrdinaryPart() {
		return nil
	}

	edits, err := allowance.ParseStored(o.Old)
	if err != nil {
		return nil // Reported when they are written.
	}

	for _, e := range edits {
		if e.Field == c.Field {
			text := fmt.Sprintf("%s changed it by hand at %s", allowance.Author(e), allowance.StoredSince(e).UTC().Format(time.RFC3339))

			return []finding.Lack{{What: policy.LackEdited, Text: text, Fix: "anyone may revert that"}}
		}
	}

	return nil
}

// lackingEdits says what of the parent was edited by whom, and that this prevents
// a window from allowing a change that one is about.
func lackingEdits(o request.Objects, policies *policy.Set, above *input.Above, windows input.Windows, c change.Change) []finding.Lack {
	edits := above.Edited
	if len(edits) == 0 {
		return nil
	}

	parts := make([]string, 0, len(edits))
	for _, e := range edits[:min(len(edits), finding.MaxRefused)] {
		part := fmt.Sprintf("%s's edit of %s", allowance.Author(e), e.Field)

		switch {
		case mayBegin(o, policies, e):
			part += " (now permitted: save it again)"
		case e.Stored.Approvals > 0:
			part += fmt.Sprintf(" (needs the approval of %s)", authority.Others(e.Stored.Approvals))
		}

		parts = append(parts, part)
	}

	edited := strings.Join(parts, ", ")
	name, _, _ := strings.Cut(allowance.Author(edits[0]), "@")
	short := fmt.Sprintf("from %s's edit of %s", name, edits[0].Field)

	window := windows.WindowFor(o, c)
	if window == nil {
		return []finding.Lack{{What: policy.LackEdited, Text: "from " + edited, Short: short}}
	}

	return []finding.Lack{{
		Policy: window.Object.GetName(), What: policy.LackEdited, Text: fmt.Sprintf(
			"UpgradeAllowance %q does not apply because of %s", window.Object.GetName(), edited),
		Fix:   "revert the edit, or ask someone with permission to make it",
		Short: fmt.Sprintf("UpgradeAllowance %q does not apply", window.Object.GetName()),
	}}
}

// mayBegin reports whether who made an edit of the parent is one who may initiate it, as
// policies are now.
func mayBegin(o request.Objects, policies *policy.Set, e v1alpha1.HeldChange) bool {
	path, err := fieldpath.Parse(e.Field)
	if err != nil {
		return false
	}

	c := change.Change{Path: path, Field: e.Field}
	user := policy.User{Name: allowance.Author(e), UID: e.Stored.UID, Groups: e.Stored.Groups}

	return slices.ContainsFunc(policies.For(o.Parent.GroupVersionKind().GroupKind()), func(p *policy.Policy) bool {
		return p.RequiredApprovals() == 0 && p.Covers(c) && !p.RequiresBinding() && policy.MayInitiate(p.Spec().Subjects, user)
	})
}

// lackingApproval says how many people have to approve for a policy to let the user initiate
// a change, after what is said of the policy already.
func lackingApproval(
	o request.Objects, how request.Manner, enforced input.Enforced, outside request.External, p *policy.Policy, c change.Change,
	said string,
) finding.Lack {
	n := p.RequiredApprovals()
	out := finding.Lack{Policy: p.Name(), What: policy.LackApproval, Approvals: n}

	out.Text = fmt.Sprintf("%sneeds the approval of %s", said, authority.Others(n))

	switch {
	case c.Field == v1alpha1.MutationCreate:
		out.Text += ", and a creation cannot wait for that"
	case c.Field == v1alpha1.MutationDelete:
		out.Text += ", and a deletion cannot wait for that"
	case !o.Root || request.Guarded(how, outside):
	default:
		out.Fix = "kubectl kausality approve " + resource.Argument(o.Target())
		if u := unstored(enforced); u != "" {
			out.Text, out.Fix = out.Text+u, ""
		}
	}

	return out
}

// unstored says which Enforcement does not let a change of a root be stored, so that nothing
// follows from it that could be approved; empty where none does.
func unstored(enforced input.Enforced) string {
	i := slices.IndexFunc(enforced.Governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(input.ActionOf(e)) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
	if i < 0 {
		return ""
	}

	return fmt.Sprintf(", but Enforcement %q refuses the edit, so nothing is saved to approve", enforced.Governing[i].Name())
}
