// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const (
	messageApplied  = "the change was applied"
	messageApplying = "the change is being applied and cannot be withdrawn"
	messageCarried  = "allowed, and not known yet to be applied"
	messageOther    = "the change was applied because of another ChangeApproval"
	messageRejects  = "the change is held despite any approval. Delete this ChangeApproval, or approve the change as the same user"
	messageNobody   = "it does not say who created it: Kausality's webhook was not asked. Delete it, and create it again"
	messageFull     = "approved, and allowed once other approvals below the same parent are used: it cannot carry more allowances"
	messageNotSeen  = "the object could not be read; it is not known whether the change was applied. Another attempt follows"

	messageRejectedNotHeld = "the change is not desired now, and is held if it is desired again. Delete this ChangeApproval to end that"
)

func messageUsedAlready(name string) string {
	return fmt.Sprintf("ChangeApproval %q was used for this change already, and allows it once. "+
		"Create a new ChangeApproval with another name", name)
}

func messageTooLate(by string) string {
	return fmt.Sprintf("it came too late: the change is being made already, by ChangeApproval %q", by)
}

func messageApplyingBy(by string) string {
	return fmt.Sprintf("the change is being made, by ChangeApproval %q", by)
}

func messageSuperseded(v *vote) string {
	if v.seen() {
		return "the change is no longer desired; if it is desired again, it needs a new ChangeApproval"
	}

	return "no held change had this digest. Look at the changes held now, and create a new ChangeApproval: " +
		fmt.Sprintf("kubectl describe pendingchange %s -n %s", v.cha.Spec.PendingChange, v.cha.Namespace)
}

func messageExpired(v *vote) string {
	return fmt.Sprintf("not used by %s. To approve the change now, create a new ChangeApproval, "+
		"with a longer spec.validFor if needed", v.expires().UTC().Format(time.RFC3339))
}

func messageOwn(user string) string {
	return fmt.Sprintf("user %q requested the change and cannot approve it. Ask someone else; "+
		"with GitOps, change and approval need different identities", user)
}

func messageApprovedSince(v *vote) string {
	return fmt.Sprintf("its user has approved the change since, by ChangeApproval %q", v.cha.Name)
}

func messageRejected(v *vote) string {
	why := ""
	if v.cha.Spec.Reason != "" {
		why = fmt.Sprintf(" (%s)", cut(v.cha.Spec.Reason))
	}

	return fmt.Sprintf("user %q rejected the change by ChangeApproval %q%s. It is held until that is deleted, or its user approves it",
		v.user(), v.cha.Name, why)
}

// messageUnknown is of a change that may be held or not.
func messageUnknown(status *v1alpha1.PendingChangeStatus) string {
	if partial(status) {
		return "waiting: more changes are held than are listed, and this may be one of them"
	}

	return "waiting: it is not known whether the change is held now"
}

// messageGranted is of an approved change that is still held.
func messageGranted(c *change, stages []v1alpha1.ApprovalUseState) string {
	for i, g := range c.grants {
		if stages[i] == v1alpha1.ApprovalWaiting && g.parent.Reports && c.of.parent != nil {
			return "approved, and held for another reason: see the conditions of " + c.of.parent.Kind + " " + c.of.parent.Name
		}
	}

	if c.edit() {
		return "approved: policies decide about the changes below it"
	}

	return "approved, and applied with the next update"
}

// messageWaiting says how many people more it takes, and who cannot.
func messageWaiting(status *v1alpha1.PendingChangeStatus, people int) string {
	who := "one more person must"
	if more := required(status) - people; more > 1 {
		who = fmt.Sprintf("%d more people must", more)
	}

	text := fmt.Sprintf("%d of %d approvals: %s approve it", people, required(status), who)
	if len(status.Requesters) > 0 {
		text += ", other than the requesters: " + strings.Join(status.Requesters, ", ")
	}

	return text
}
