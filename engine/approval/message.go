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
	messageApplied  = "the change was made"
	messageApplying = "the change is being made: it cannot be withdrawn any more"
	messageCarried  = "it is let through, and not known yet to be made"
	messageOther    = "the change was made because of another ChangeApproval"
	messageRejects  = "the change stays held, whoever approves it: to end that, delete this, or approve the change as the same user"
	messageNobody   = "it does not say who made it, for Kausality's webhook was not asked: delete it, and make it again"
	messageFull     = "it is approved, and let through once other approvals of objects of the same parent were used: " +
		"the parent cannot carry more allowances"
	messageNotSeen = "the object could not be read, so that it is not known whether the change was made: it is tried again"

	messageRejectedNotHeld = "nothing asks for the change now: it stays held should something do so again; to end that, delete this"
)

func messageUsedAlready(name string) string {
	return fmt.Sprintf("a ChangeApproval of the name %q was used for this change already: it lets it through once; "+
		"to let it through once more, make a new ChangeApproval of another name", name)
}

func messageSuperseded(v *vote) string {
	if v.seen() {
		return "nothing asks for the change any more: should something do so again, it needs a new ChangeApproval"
	}

	return "nothing that was held had this digest when it was looked at first: look at what is held now, " +
		fmt.Sprintf("kubectl describe pendingchange %s -n %s, and make a new ChangeApproval", v.Spec.PendingChange, v.Namespace)
}

func messageExpired(v *vote) string {
	return fmt.Sprintf("it was not used by %s: if the change is still wanted, make a new ChangeApproval, "+
		"with another spec.validFor if need be", v.expires().UTC().Format(time.RFC3339))
}

func messageOwn(user string) string {
	return fmt.Sprintf("user %q has asked for what is held, and nobody approves changes of their own: have somebody else approve it; "+
		"with GitOps, the change and its approval have to come from different identities", user)
}

func messageRejected(v *vote) string {
	why := ""
	if v.Spec.Reason != "" {
		why = fmt.Sprintf(" (%s)", cut(v.Spec.Reason))
	}

	return fmt.Sprintf("user %q has rejected the change by ChangeApproval %q%s: it stays held until that is deleted, or its user approves it",
		v.user(), v.Name, why)
}

// messageUnknown is of what nobody can know to be held or not.
func (c *computing) messageUnknown() string {
	if c.cut() {
		return "more is held than can be listed, so that it is not known whether this is: it waits until it is listed"
	}

	return "it is not known whether the change is held now: it waits until that is"
}

// messageGranted is of a change that may be made, and is held as yet.
func (c *computing) messageGranted(s *subject) string {
	for _, g := range s.grants {
		if c.stageOf(g) == waiting && g.parent.Reports {
			return "it is approved, and held for another reason: look at the conditions of " + s.parent.Kind + " " + s.parent.Name
		}
	}

	if s.edit() {
		return "it is approved: what follows from it is let through as policies say"
	}

	return "it is approved, and made by the next that asks for it"
}

// messageWaiting says how many people more it takes.
func (c *computing) messageWaiting(t tally) string {
	required := int(max(c.Status.Required, 1))
	more := required - len(t.people)

	who := "one more person has"
	if more > 1 {
		who = fmt.Sprintf("%d more people have", more)
	}

	return fmt.Sprintf("%d of %d approvals: %s to approve it%s", len(t.people), required, who, c.butNot())
}

// butNot names who cannot.
func (c *computing) butNot() string {
	if len(c.Status.Requesters) == 0 {
		return ""
	}

	return ", not one of those who asked for it: " + strings.Join(c.Status.Requesters, ", ")
}

// leastOf orders the states by how little has come of what was asked for.
func leastOf() []v1alpha1.ApprovalState {
	return []v1alpha1.ApprovalState{
		v1alpha1.ApprovalStateNotAllowed, v1alpha1.ApprovalStateRejected, v1alpha1.ApprovalStateExpired, v1alpha1.ApprovalStateSuperseded,
		v1alpha1.ApprovalStateWaiting, v1alpha1.ApprovalStateGranted, v1alpha1.ApprovalStateApplied,
	}
}
