// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// objects caches the objects of one plan: each is read once, and stays the same.
type objects struct {
	cluster Cluster
	read    map[v1alpha1.ObjectReference]Seen
	// err ends the attempt; nothing is read after it.
	err error
}

// see returns an object as the API server has it; false where that is not known.
func (o *objects) see(ctx context.Context, ref v1alpha1.ObjectReference) (Seen, bool) {
	seen, ok := o.read[ref]
	if !ok && o.err == nil {
		seen, o.err = o.cluster.Object(ctx, ref)
		o.read[ref] = seen
	}

	return seen, o.err == nil && !seen.Unknown
}

// unknown reports whether an object could not be read.
func (o *objects) unknown() bool {
	for _, seen := range o.read {
		if seen.Unknown {
			return true
		}
	}

	return false
}

// stages are those of all grants of a change, as functions report them; empty where nothing is known yet.
func (c *change) stages(ctx context.Context, o *objects) []v1alpha1.ApprovalUseState {
	out := make([]v1alpha1.ApprovalUseState, len(c.grants))
	for i, g := range c.grants {
		if out[i] = c.stage(ctx, g, o); out[i] == v1alpha1.ApprovalUsed {
			break // That is the end of them all.
		}
	}

	return out
}

// stage is the progress of a grant by the report of its parent, or else by the object
// of the change. What another cache shows of a composed resource does not count where the
// function reports: it would hold the change again that it does not see made. A deletion that
// is not desired any more was made, or reverted: that shows the object alone.
func (c *change) stage(ctx context.Context, g *grant, o *objects) v1alpha1.ApprovalUseState {
	if g.parent.Reports {
		if state := g.reported(); state != v1alpha1.ApprovalAbsent || !c.deletion() || c.entry != nil {
			return state
		}
	}

	if c.of.ref.UID == "" {
		return ""
	}

	seen, known := o.see(ctx, c.of.ref)

	switch {
	case !known:
		return ""
	case c.deletion():
		return c.stageOfDeletion(seen)
	case seen.Hidden:
		return ""
	case seen.Object == nil:
		return v1alpha1.ApprovalAbsent
	case Used(seen.Object, g.allowance), c.outside() && managed.Applied(seen.Object, g.allowance):
		return v1alpha1.ApprovalUsed
	case c.outside() && managed.Applies(seen.Object, g.allowance):
		return v1alpha1.ApprovalApplying
	case c.entry != nil || holds(seen.Object, c.digest):
		return v1alpha1.ApprovalWaiting
	default:
		return v1alpha1.ApprovalAbsent
	}
}

// stageOfDeletion is the progress of a deletion. Of an object that may not be read it is not known: nothing is granted any more.
func (c *change) stageOfDeletion(seen Seen) v1alpha1.ApprovalUseState {
	switch {
	case !seen.Hidden && seen.Object == nil:
		return v1alpha1.ApprovalUsed
	case !seen.Hidden && resource.Deleting(seen.Object):
		return v1alpha1.ApprovalApplying
	case c.entry != nil:
		return v1alpha1.ApprovalWaiting
	default:
		return v1alpha1.ApprovalAbsent
	}
}

// reported is what the function has reported; empty for nothing.
func (g *grant) reported() v1alpha1.ApprovalUseState {
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

// shown is the progress of a grant to be taken away by the object of the change: in use, used, or empty.
func (c *change) shown(g *grant, seen Seen) v1alpha1.ApprovalUseState {
	switch {
	case seen.Hidden: // It must not outlast its time for that.
		return ""
	case seen.Object == nil && c.deletion():
		return v1alpha1.ApprovalUsed
	case seen.Object != nil && (c.deletion() && resource.Deleting(seen.Object) || Used(seen.Object, g.allowance)):
		return v1alpha1.ApprovalApplying
	default:
		return ""
	}
}

// holds reports whether the record of what is held of an object names a change, or its drift is one.
func holds(u *unstructured.Unstructured, digest string) bool {
	held, err := allowance.ParseHeld(u)
	if err != nil {
		held = nil
	}

	return slices.ContainsFunc(append(held, managed.DriftEntries(u, nil)...), func(h v1alpha1.HeldChange) bool { return h.Digest == digest })
}
