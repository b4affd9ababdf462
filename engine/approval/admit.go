// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
)

// Request is a request to make a ChangeApproval.
type Request struct {
	// Approval is what is to be made, in the namespace that it is made in.
	Approval *v1alpha1.ChangeApproval
	// Pending is the PendingChange that it names; nil where there is none.
	Pending *v1alpha1.PendingChange
	// User who makes it, as the API server knows them.
	User v1alpha1.Approver
}

// Admission is what becomes of a [Request].
type Admission struct {
	// Refused says why it is refused, and what to do; empty where it is not.
	Refused string
	// Approver and Changes are what is to be stored as spec.approver and spec.changes.
	Approver v1alpha1.Approver
	Changes  []string
	// Warnings are for the user: what is destroyed, and what cannot be seen.
	Warnings []string
}

// Admit decides whether a ChangeApproval is made, and what of. A change that nothing holds
// is no reason against it: it grants nothing. What the schema refuses is left to that. An error means that it could not be asked who
// may do what.
func Admit(in Request, ask *Asker) (Admission, error) {
	out := Admission{Approver: in.User, Changes: in.Approval.Spec.Changes}

	if malformed(in.Approval.Spec) {
		return out, nil
	}

	// 1. Which changes are meant.
	if out.Refused = unlisted(in); out.Refused != "" {
		return out, nil
	}

	meant := in.meant()

	if out.Refused = undecidable(in, meant); out.Refused != "" {
		return out, nil
	}

	out.Changes = digests(in, meant)

	// 2. Whether the user may decide about them.
	spec := in.Approval.Spec

	if spec.Decision.Approves() && spec.Decision != v1alpha1.DecisionBreakGlass {
		if out.Refused = SameEyes(in.User.Username, in.Pending.Status.Requesters); out.Refused != "" {
			return out, nil
		}
	}

	if out.Refused = ask.machine(in.User.Username, spec.Decision); out.Refused != "" {
		return out, nil
	}

	for _, entry := range meant {
		ok, reason, err := ask.MayDecide(in.User, spec.Decision, entry, in.Pending.Spec.ObjectRef.Namespace)
		if err != nil {
			return out, err
		}

		if !ok {
			out.Refused = reason

			return out, nil
		}
	}

	// 3. What they should know.
	out.Warnings = warnings(in, meant)

	return out, nil
}

// malformed is true of what the schema of ChangeApprovals refuses, in better words, once it
// is asked: that is after us.
func malformed(spec v1alpha1.ChangeApprovalSpec) bool {
	named := spec.Changes
	if spec.Digest != "" {
		named = append(slices.Clone(named), spec.Digest)
	}

	if v := spec.ValidFor; v != nil && (v.Duration < time.Second || v.Duration > v1alpha1.MaxApprovalAge) {
		return true
	}

	decisions := []v1alpha1.ApprovalDecision{"", v1alpha1.DecisionApprove, v1alpha1.DecisionReject, v1alpha1.DecisionBreakGlass}

	if spec.Decision == v1alpha1.DecisionBreakGlass && strings.TrimSpace(spec.Reason) == "" {
		return true
	}

	return spec.PendingChange == "" || len(named) == 0 || !slices.Contains(decisions, spec.Decision) ||
		slices.ContainsFunc(named, func(d string) bool { return !digest.WellFormed(d) })
}

// unlisted says why the changes that are meant cannot be known.
func unlisted(in Request) string {
	spec := in.Approval.Spec

	if in.Pending == nil {
		return fmt.Sprintf("there is no PendingChange %q in namespace %q: its changes are not held any more. "+
			"kubectl kausality pending -n %[2]s", spec.PendingChange, in.Approval.Namespace)
	}

	status := in.Pending.Status

	if spec.Digest != "" && spec.Digest != status.Digest {
		return fmt.Sprintf("spec.digest is not that of PendingChange %q, which is %s: other changes are held. "+
			"Look again: kubectl describe pendingchange %[1]s -n %[3]s", in.Pending.Name, orNone(status.Digest), in.Approval.Namespace)
	}

	if listed := len(status.Changes); len(spec.Changes) == 0 && int(status.Total) > listed {
		return fmt.Sprintf("PendingChange %q lists %d of %d changes, and only listed changes can be decided. Name their digests "+
			"in spec.changes, at most %[2]d; the others are listed once these are applied",
			in.Pending.Name, listed, status.Total)
	}

	return ""
}

func orNone(sum string) string {
	if sum == "" {
		return "none"
	}

	return sum
}

// meant are the changes that are held, and meant: all that are listed where none is named.
func (in Request) meant() []v1alpha1.HeldChange {
	named, listed := in.Approval.Spec.Changes, in.Pending.Status.Changes
	if len(named) == 0 {
		return listed
	}

	var out []v1alpha1.HeldChange

	for _, entry := range listed {
		if entry.Digest != "" && slices.Contains(named, entry.Digest) {
			out = append(out, entry)
		}
	}

	return out
}

// undecidable says why nobody can decide about a change that is meant.
func undecidable(in Request, meant []v1alpha1.HeldChange) string {
	const others = "; to decide about the others, name their digests in spec.changes"

	for _, entry := range meant {
		switch {
		case entry.Digest == "":
			return fmt.Sprintf("%s of %s has no digest yet. Try again later%s",
				entry.Field, Subject(entry), others)
		case entry.Unstable:
			return fmt.Sprintf("%s of %s has another desired value each time, and cannot be decided. "+
				"Make the value stable in the Composition, or add an AllowancePolicy%s", entry.Field, Subject(entry), others)
		}
	}

	if len(meant) == 0 && len(in.Approval.Spec.Changes) == 0 {
		return fmt.Sprintf("PendingChange %q lists no change: nothing is held", in.Pending.Name)
	}

	return ""
}

// digests are those that are stored: the ones that are named, each once, or those of all
// changes that are meant.
func digests(in Request, meant []v1alpha1.HeldChange) []string {
	var out []string

	for _, digest := range in.Approval.Spec.Changes {
		if !slices.Contains(out, digest) {
			out = append(out, digest)
		}
	}

	if len(out) > 0 {
		return out
	}

	for _, entry := range meant {
		if !slices.Contains(out, entry.Digest) {
			out = append(out, entry.Digest)
		}
	}

	return out
}

// warnings are about changes that are approved.
func warnings(in Request, meant []v1alpha1.HeldChange) []string {
	var out []string

	for _, digest := range digests(in, meant) {
		if !slices.ContainsFunc(meant, func(e v1alpha1.HeldChange) bool { return e.Digest == digest }) {
			out = append(out, fmt.Sprintf("no held change has the digest %s: this decision has no effect", digest))
		}
	}

	if !in.Approval.Spec.Decision.Approves() {
		return out
	}

	if in.Approval.Spec.Decision == v1alpha1.DecisionBreakGlass {
		out = append(out, "this allows the changes without any other approval, and despite any rejection: "+
			"see event KausalityBreakGlass and metric kausality_approvals_total")
	}

	for _, entry := range meant {
		if entry.Destroys {
			out = append(out, fmt.Sprintf("this destroys something: %s of %s", entry.Field, Subject(entry)))
		}

		if entry.Masked {
			out = append(out, fmt.Sprintf("the value of %s of %s is hidden: any value is approved, once",
				entry.Field, Subject(entry)))
		}
	}

	return out
}
