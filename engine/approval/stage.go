// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stage is how far a grant is.
type stage int

const (
	// unsaid is one of which nothing is known yet.
	unsaid stage = iota
	// waiting is one whose change is still held.
	waiting
	// applying is one that is being made use of, and used one that was.
	applying
	used
	// absent is one of a change that nothing asks for.
	absent
)

// stageOf is how far a grant is: what the function of the XR has reported that carries it, or
// else what the object shows that the change is of. What another cache shows of a composed
// resource does not count where the function reports: it would hold the change again that
// it does not see made.
func (c *computing) stageOf(g *grant) stage {
	if g.shown != unsaid {
		return g.shown
	}

	if !g.parent.Reports {
		return c.stageOfChild(g)
	}

	switch use := reported(g); {
	case use == v1alpha1.ApprovalUsed:
		return used
	case use == v1alpha1.ApprovalApplying:
		return applying
	case use == v1alpha1.ApprovalWaiting:
		return waiting
	case use == v1alpha1.ApprovalAbsent && g.subject.field == v1alpha1.MutationDelete && g.subject.entry == nil:
		return c.stageOfDeletion(g)
	case use == v1alpha1.ApprovalAbsent:
		return absent
	default:
		return unsaid
	}
}

// reported is what the function has reported; empty where it has not.
func reported(g *grant) v1alpha1.ApprovalUseState {
	if g.parent.List == nil {
		return ""
	}

	for _, use := range g.parent.List.Approvals {
		if use.Approval == g.allowance.Approval && use.Digest == g.allowance.Digest {
			return use.State
		}
	}

	return ""
}

// stageOfDeletion is how far a deletion is that nothing asks for any more, by whether the object
// is there on the API server: that was the end of it, or it was taken back.
func (c *computing) stageOfDeletion(g *grant) stage {
	if g.subject.ref.UID == "" {
		return unsaid
	}

	seen, known := c.see(g.subject.ref)

	switch {
	case !known:
		return unsaid
	case seen.Hidden:
		return absent // Whichever it was, nothing is granted any more.
	case seen.Object == nil:
		return used
	case resource.Deleting(seen.Object):
		c.again(unknownAgain)

		return applying
	default:
		return absent
	}
}

// stageOfChild is how far a grant is by what the object shows that its change is of.
func (c *computing) stageOfChild(g *grant) stage {
	s := g.subject
	if s.ref.UID == "" {
		return unsaid
	}

	if s.field == v1alpha1.MutationDelete {
		if stage := c.stageOfDeletion(g); stage != absent || s.entry == nil {
			return stage
		}

		return waiting
	}

	seen, known := c.see(s.ref)

	switch {
	case !known, seen.Hidden:
		return unsaid
	case seen.Object == nil:
		return absent
	case Used(seen.Object, g.allowance), s.outside() && gate.Applied(seen.Object, g.allowance):
		return used
	case s.outside() && gate.Applies(seen.Object, g.allowance):
		return applying
	case s.entry != nil || holds(seen.Object, s.digest):
		return waiting
	default:
		return absent
	}
}

// holds reports whether the record of what is held of an object names a change, or its drift is one.
func holds(u *unstructured.Unstructured, digest string) bool {
	held, err := allowance.ParseHeld(u)
	if err != nil {
		held = nil
	}

	return slices.ContainsFunc(append(held, gate.DriftEntries(u, nil)...), func(h v1alpha1.HeldChange) bool { return h.Digest == digest })
}
