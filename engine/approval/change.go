// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// change is one change that is held, decided about, or carried. Once read it stays the same.
type change struct {
	digest string
	// entry of it in the list of held changes; nil where it is not held.
	entry *v1alpha1.HeldChange
	// of is its target, known from when it was held; empty where it never was.
	of target
	// listed is true where the PendingChange lists it on the API server.
	listed bool
	// votes about it, the newest first.
	votes []*vote
	// grants are those that parents carry and that may serve.
	grants []*grant
	// spent are those that parents still carry, and that may not.
	spent []taken
}

// target is the field that a change is of, its object, and the parent of that.
type target struct {
	ref    v1alpha1.ObjectReference
	parent *v1alpha1.ObjectReference
	field  string
}

// grant is what a parent carries because of one approval of one change.
type grant struct {
	parent    *Parent
	allowance v1alpha1.Allowance
	// vote of the approval; nil where that is withdrawn.
	vote *vote
}

// taken is a grant to be taken away; used where that is because it served.
type taken struct {
	grant *grant
	used  bool
}

// read finds all changes that are held, decided about, or carried.
func read(in Input) []*change {
	// 1. What is held, decided about, and carried.
	f := found{by: map[string]*change{}}

	for i := range in.Status.Changes {
		if e := &in.Status.Changes[i]; e.Digest != "" {
			c := f.change(e.Digest)
			c.entry, c.of = e, target{ref: e.Ref, parent: e.Parent, field: e.Field}
		}
	}

	f.votes(in.Approvals)
	f.grants(in.Parents)

	// 2. The targets of changes that are not held.
	for _, p := range in.Previous {
		if c := f.by[p.Digest]; c != nil {
			c.know(target{ref: p.Ref, parent: p.Parent, field: p.Field})
		}
	}

	for _, e := range in.Listed {
		if c := f.by[e.Digest]; c != nil {
			c.know(target{ref: e.Ref, parent: e.Parent, field: e.Field})
			c.listed = true
		}
	}

	for _, c := range f.list {
		for _, g := range c.grants {
			c.know(target{parent: &g.parent.Ref, field: g.allowance.Mutation})
		}

		// 3. The votes and grants that are over.
		c.end(in.Approved)
	}

	return f.list
}

// found are changes in the order of their discovery, and by digest.
type found struct {
	by   map[string]*change
	list []*change
}

func (f *found) change(digest string) *change {
	c := f.by[digest]
	if c == nil {
		c = &change{digest: digest}
		f.by[digest] = c
		f.list = append(f.list, c)
	}

	return c
}

// votes adds the votes of ChangeApprovals, the newest first.
func (f *found) votes(approvals []v1alpha1.ChangeApproval) {
	list := make([]*v1alpha1.ChangeApproval, 0, len(approvals))
	for i := range approvals {
		list = append(list, &approvals[i])
	}

	slices.SortFunc(list, newer)

	for _, cha := range list {
		for i, digest := range cha.Spec.Changes {
			if digest == "" || slices.Contains(cha.Spec.Changes[:i], digest) {
				continue
			}

			c, v := f.change(digest), &vote{cha: cha}

			for _, was := range cha.Status.Changes {
				if was.Digest == digest {
					v.was = was
					c.know(target{ref: was.Ref, parent: was.Parent, field: was.Field})
				}
			}

			c.votes = append(c.votes, v)
		}
	}
}

// grants adds what parents carry.
func (f *found) grants(parents []Parent) {
	for i := range parents {
		p := &parents[i]

		for _, a := range p.Allowances {
			if !given(a) {
				continue
			}

			c := f.change(a.Digest)
			j := slices.IndexFunc(c.grants, func(g *grant) bool { return g.parent == p && g.allowance.Approval == a.Approval })

			if j < 0 {
				g := &grant{parent: p, allowance: a}
				if v := slices.IndexFunc(c.votes, func(v *vote) bool { return string(v.cha.UID) == a.Approval }); v >= 0 {
					g.vote = c.votes[v]
				}

				c.grants = append(c.grants, g)
			} else if !allowance.External(a) {
				c.grants[j].allowance = a // What shows how far it is, not what rides along.
			}
		}
	}
}

// know notes the target, unless that is known.
func (c *change) know(of target) {
	if c.of.field == "" && of.field != "" {
		c.of = of
	}
}

// end finds the votes that are over, and the grants that would serve once more.
func (c *change) end(approved []v1alpha1.ApprovedChange) {
	for _, v := range c.votes {
		v.final = v.ending(c, approved)
	}

	c.grants = slices.DeleteFunc(c.grants, func(g *grant) bool {
		used := slices.ContainsFunc(approved, func(a v1alpha1.ApprovedChange) bool { return a.UID == g.uid() && a.Digest == c.digest })

		switch {
		case g.vote != nil && g.vote.over():
			used = g.vote.final.state == v1alpha1.ApprovalStateApplied
		case !used:
			return false
		}

		c.spent = append(c.spent, taken{grant: g, used: used})

		return true
	})
}

// carries reports whether a parent carries what an approval gives for the change.
func (c *change) carries(v *vote) bool {
	return slices.ContainsFunc(c.grants, func(g *grant) bool { return g.vote == v })
}

// granted reports whether an approval counted when the change was allowed.
func (c *change) granted(v *vote) bool {
	return !v.rejects() && (v.was.State == v1alpha1.ApprovalStateGranted || c.carries(v))
}

// edit reports whether a held change is an edit of the root itself, which is stored already,
// and from which nothing follows.
func (c *change) edit() bool {
	return c.entry != nil && c.entry.Parent != nil && c.entry.Parent.UID == c.entry.Ref.UID &&
		(c.entry.Cause == nil || c.entry.Cause.Type != v1alpha1.CauseDrift)
}

// outside reports whether a change is of an external object alone: the managed resource carries what approves it.
func (c *change) outside() bool {
	return c.of.parent != nil && c.of.ref.UID != "" && c.of.parent.UID == c.of.ref.UID && !c.edit()
}

// deletion reports whether it is the deletion of an object.
func (c *change) deletion() bool { return c.of.field == v1alpha1.MutationDelete }

func (c *change) parentUID() types.UID {
	if c.of.parent == nil {
		return ""
	}

	return c.of.parent.UID
}
