// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// subject is one change, and all there is about it.
type subject struct {
	digest string
	// entry is what is held; nil where it is not.
	entry *v1alpha1.HeldChange
	// ref, parent and field are known from when it was; empty where it never was.
	ref    v1alpha1.ObjectReference
	parent *v1alpha1.ObjectReference
	field  string
	// votes about it, the newest first.
	votes []*vote
	// grants that parents carry.
	grants []*grant
	// listed is true where the PendingChange lists it on the API server.
	listed bool
	// takes are grants to be taken away, and gives those to be given.
	takes []taken
	gives []Grant
}

// taken is a grant that is to be taken away; used where that is because it was.
type taken struct {
	grant *grant
	used  bool
}

// vote is what one ChangeApproval is to one change.
type vote struct {
	ChangeApproval *v1alpha1.ChangeApproval

	// was is what is recorded of it; its State is empty where nothing is.
	was v1alpha1.ChangeDecision
	// state and message are what it comes to.
	state   v1alpha1.ApprovalState
	message string
	// recalled is true of a state that was there before.
	recalled bool
	// subject that it is about.
	subject *subject
}

// grant is what a parent carries because of one approval of one change.
type grant struct {
	parent    *Parent
	allowance v1alpha1.Allowance
	subject   *subject
	// vote that gave it; nil where that is withdrawn.
	vote *vote
	// shown is how far it is by what the object shows; unsaid where that is nothing.
	shown stage
}

func (v *vote) to(state v1alpha1.ApprovalState, message string) { v.state, v.message = state, message }

// keep leaves it as it was; what was not looked at yet waits.
func (v *vote) keep(message string) {
	v.to(v1alpha1.ApprovalState(cmp.Or(string(v.was.State), string(v1alpha1.ApprovalStateWaiting))), message)
}

func (v *vote) rejects() bool { return !v.ChangeApproval.Spec.Decision.Approves() }

// breaks reports whether it lets the change through alone.
func (v *vote) breaks() bool { return v.ChangeApproval.Spec.Decision == v1alpha1.DecisionBreakGlass }

// decided is its decision.
func (v *vote) decided() v1alpha1.ApprovalDecision {
	return cmp.Or(v.ChangeApproval.Spec.Decision, v1alpha1.DecisionApprove)
}

// user is who made it; empty where it does not say.
func (v *vote) user() string {
	if v.ChangeApproval.Spec.Approver == nil {
		return ""
	}

	return v.ChangeApproval.Spec.Approver.Username
}

// seen reports whether the change was held when the approval was looked at.
func (v *vote) seen() bool { return v.was.Field != "" }

// expires is when an approval may not be used any more. A rejection lasts.
func (v *vote) expires() time.Time {
	valid := v1alpha1.DefaultValidFor
	if v.ChangeApproval.Spec.ValidFor != nil {
		valid = v.ChangeApproval.Spec.ValidFor.Duration
	}

	return v.ChangeApproval.CreationTimestamp.Add(valid)
}

func (c *computing) expired(v *vote) bool {
	return !v.rejects() && !c.now.Time.Before(v.expires())
}

// done reports whether nothing comes of it any more, whatever happens.
func (v *vote) done() bool { return v.state.Final() }

// grantedBefore reports whether the approval is one that counted when its change was let
// through.
func (s *subject) grantedBefore(v *vote) bool {
	return !v.rejects() && (v.was.State == v1alpha1.ApprovalStateGranted || s.carries(v))
}

// carries reports whether a parent carries what an approval gives for the change.
func (s *subject) carries(v *vote) bool {
	return slices.ContainsFunc(s.grants, func(g *grant) bool { return g.vote == v })
}

func (g *grant) uid() types.UID { return types.UID(g.allowance.Approval) }

// approval is the name of the ChangeApproval that gave it.
func (g *grant) approval() string { return g.allowance.Source.Name }

// decision is that of the ChangeApproval that gave it; empty for one that approves like others.
func (g *grant) decision() v1alpha1.ApprovalDecision {
	if len(g.allowance.Trace) == 0 {
		return ""
	}

	return v1alpha1.ApprovalDecision(g.allowance.Trace[0].Attestations[v1alpha1.AttestationDecision])
}

func (g *grant) describe() Grant {
	return Grant{
		Approval: g.approval(), User: g.allowance.Initiator, UID: g.uid(), Digest: g.allowance.Digest, Decision: g.decision(),
		Ref: g.subject.ref, Field: g.subject.field,
	}
}

// gather finds all changes that are held, approved, or let through.
func (c *computing) gather() {
	for i := range c.Input.Parents {
		c.parents[c.Input.Parents[i].Ref.UID] = &c.Input.Parents[i]
	}

	for i := range c.Input.Status.Changes {
		if e := &c.Input.Status.Changes[i]; e.Digest != "" {
			s := c.subject(e.Digest)
			s.entry, s.ref, s.parent, s.field = e, e.Ref, e.Parent, e.Field
		}
	}

	c.gatherVotes()
	c.gatherGrants()

	for i := range c.Input.Previous {
		p := &c.Input.Previous[i]
		if s := c.subjects[p.Digest]; s != nil {
			s.know(p.Ref, p.Parent, p.Field)
		}
	}

	for i := range c.Input.Listed {
		e := &c.Input.Listed[i]
		if s := c.subjects[e.Digest]; s != nil {
			s.know(e.Ref, e.Parent, e.Field)
			s.listed = true
		}
	}

	for _, s := range c.order {
		for _, g := range s.grants { // Of what is not known otherwise.
			s.know(v1alpha1.ObjectReference{}, &g.parent.Ref, g.allowance.Mutation)
		}
	}
}

// edit reports whether a change that is held is an edit of the root itself, which is stored already,
// and from which nothing follows.
func (s *subject) edit() bool {
	return s.entry != nil && s.entry.Parent != nil && s.entry.Parent.UID == s.entry.Ref.UID &&
		(s.entry.Cause == nil || s.entry.Cause.Type != v1alpha1.CauseDrift)
}

// outside reports whether a change is of an external object alone: the managed resource carries what approves it.
func (s *subject) outside() bool {
	return s.parent != nil && s.ref.UID != "" && s.parent.UID == s.ref.UID && !s.edit()
}

// know notes what a change is of, unless that is known.
func (s *subject) know(ref v1alpha1.ObjectReference, parent *v1alpha1.ObjectReference, field string) {
	if s.field == "" && field != "" {
		s.ref, s.parent, s.field = ref, parent, field
	}
}

func (c *computing) subject(digest string) *subject {
	s := c.subjects[digest]
	if s == nil {
		s = &subject{digest: digest}
		c.subjects[digest] = s
		c.order = append(c.order, s)
	}

	return s
}

func (c *computing) gatherVotes() {
	list := make([]*v1alpha1.ChangeApproval, 0, len(c.Input.Approvals))
	for i := range c.Input.Approvals {
		list = append(list, &c.Input.Approvals[i])
	}

	slices.SortFunc(list, newer)

	for _, cha := range list {
		for i, digest := range cha.Spec.Changes {
			if digest == "" || slices.Contains(cha.Spec.Changes[:i], digest) {
				continue
			}

			v := &vote{ChangeApproval: cha, subject: c.subject(digest)}

			for _, was := range cha.Status.Changes {
				if was.Digest == digest {
					v.was = was
					v.subject.know(was.Ref, was.Parent, was.Field)
				}
			}

			v.subject.votes = append(v.subject.votes, v)
			c.votes = append(c.votes, v)
		}
	}
}

// newer orders the newest first. Of two of one second a rejection counts as the newer.
func newer(a, b *v1alpha1.ChangeApproval) int {
	rejects := func(c *v1alpha1.ChangeApproval) int {
		if !c.Spec.Decision.Approves() {
			return 0
		}

		return 1
	}

	return cmp.Or(
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(rejects(a), rejects(b)),
		cmp.Compare(b.Name, a.Name), cmp.Compare(a.UID, b.UID),
	)
}

func (c *computing) gatherGrants() {
	for i := range c.Input.Parents {
		p := &c.Input.Parents[i]

		for _, a := range p.Allowances {
			if a.Digest == "" && a.Approval == "" {
				continue
			}

			s := c.subject(a.Digest)
			j := slices.IndexFunc(s.grants, func(g *grant) bool { return g.parent == p && g.allowance.Approval == a.Approval })

			if j < 0 {
				g := &grant{parent: p, allowance: a, subject: s}
				if v := slices.IndexFunc(s.votes, func(v *vote) bool { return string(v.ChangeApproval.UID) == a.Approval }); v >= 0 {
					g.vote = s.votes[v]
				}

				s.grants = append(s.grants, g)
			} else if !allowance.External(a) {
				s.grants[j].allowance = a // What shows how far it is, not what rides along.
			}
		}
	}
}
