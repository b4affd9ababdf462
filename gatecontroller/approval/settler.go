// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Rights says who may decide about changes.
type Rights interface {
	// MayDecide reports whether an approver may decide about a change, and why not. The namespace
	// is that of the object that people edit. An error means that it is not known.
	MayDecide(
		ctx context.Context, approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange, rootNamespace string,
	) (ok bool, reason string, err error)
}

// Objects reads objects of any kind.
type Objects interface {
	// Read reads the object that is referred to, of that UID where the reference has one; live
	// is from the API server, and else it may be from the cache. The error is object.ErrGone
	// where it is not there. It is not to be modified.
	Read(ctx context.Context, ref v1alpha1.ObjectReference, live bool) (*unstructured.Unstructured, error)
}

// Settler carries out what becomes of ChangeApprovals.
type Settler struct {
	// Client reads ChangeApprovals from the cache, by the index that [Index] makes, and writes.
	Client client.Client
	// Live reads ChangeApprovals and PendingChanges from the API server.
	Live    client.Reader
	Objects Objects
	Rights  Rights
	Judge   Judge
	Events  events.EventRecorder
	// Metrics count into which states changes come; nil for nobody.
	Metrics *Metrics
	Now     func() time.Time
}

// maxRounds is how often a plan may ask for more than was read: for what is confirmed, then for
// parents, then for what these are about, and once more where something has changed meanwhile.
const maxRounds = 5

var errRestless = errors.New("what it follows from changes all the time")

// Settle completes the status of a PendingChange, which says what is held below a root: by its
// approvals, the conditions Approved and Applied, and no FinishedAt as long as something is
// under way. It writes what approvals grant and what has become of them, and says when to look
// again though nothing happens; zero is for never. The error may be a conflict, where something
// has changed since it was read. Root is nil where there is none any more.
func (s *Settler) Settle(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus,
) (time.Duration, error) {
	// 1. What is there?
	g, err := s.gather(ctx, root, pch, status)
	if err != nil {
		return 0, err
	}

	// 2. What becomes of it?
	plan, err := g.plan(ctx)
	if err != nil {
		return 0, err
	}

	if plan.Failed != nil {
		log.FromContext(ctx).Error(plan.Failed, "Cannot ask who may decide about changes; trying again")
	}

	// 3. Write it, in this order.
	for _, step := range []func(context.Context, approval.Plan) error{g.first, g.remember, g.parents, g.edits, g.last, g.remove} {
		if err := step(ctx, plan); err != nil {
			return 0, err
		}
	}

	plan.Complete(status)

	// 4. What was approved is no edit any more that nobody allowed.
	again, err := g.forgetEdits(ctx, status)
	if err != nil {
		return 0, err
	}

	if again > 0 && (plan.Again == 0 || again < plan.Again) {
		return again, nil
	}

	return plan.Again, nil
}

// gathering is what was read for one PendingChange.
type gathering struct {
	Settler *Settler

	in   approval.Input
	root *unstructured.Unstructured
	pch  *v1alpha1.PendingChange
	// objects are those that were read, and may be written, by UID.
	objects map[types.UID]*unstructured.Unstructured
	// written are ChangeApprovals whose status was written, by UID.
	written map[types.UID]*v1alpha1.ChangeApproval
}

// gather reads what approvals depend on from the cache.
func (s *Settler) gather(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus,
) (*gathering, error) {
	g := &gathering{
		Settler: s, root: root, pch: pch,
		objects: map[types.UID]*unstructured.Unstructured{}, written: map[types.UID]*v1alpha1.ChangeApproval{},
	}
	g.in = approval.Input{
		Status: status, Made: pch.CreationTimestamp.Time, Previous: pch.Status.Approvals,
		Seen: map[v1alpha1.ObjectReference]approval.Seen{}, MayDecide: s.asking(ctx, pch.Spec.ObjectRef.Namespace), Now: s.Now(),
	}

	list := &v1alpha1.ChangeApprovalList{}
	if err := s.Client.List(ctx, list, client.InNamespace(pch.Namespace), client.MatchingFields{IndexedField: pch.Name}); err != nil {
		return nil, fmt.Errorf("cannot list ChangeApprovals of namespace %q: %w", pch.Namespace, err)
	}

	g.in.Approvals = list.Items

	var (
		ref *v1alpha1.ObjectReference
		err error
	)

	if root != nil {
		ref = &v1alpha1.ObjectReference{
			APIVersion: root.GetAPIVersion(), Kind: root.GetKind(), Namespace: root.GetNamespace(), Name: root.GetName(), UID: root.GetUID(),
		}
		g.objects[ref.UID] = root

		if g.in.Approved, err = allowance.ParseApproved(root); err != nil {
			return nil, fmt.Errorf("cannot read %s %q: %w", root.GetKind(), root.GetName(), err)
		}
	}

	for _, ref := range approval.ParentRefs(ref, g.in) {
		if err := g.parent(ctx, ref); err != nil {
			return nil, err
		}
	}

	return g, nil
}

// parent reads one parent. One that may not be read is left out.
func (g *gathering) parent(ctx context.Context, ref v1alpha1.ObjectReference) error {
	u := g.objects[ref.UID]

	if u == nil {
		var err error

		switch u, err = g.Settler.Objects.Read(ctx, ref, false); {
		case errors.Is(err, object.ErrGone):
			g.in.Parents = append(g.in.Parents, approval.Parent{Ref: ref, Gone: true})

			return nil
		case apierrors.IsForbidden(err):
			log.FromContext(ctx).Info("Cannot read a parent of what is held", "kind", ref.Kind, "object", ref.Name)

			return nil
		case err != nil:
			return fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
		}

		g.objects[ref.UID] = u
	}

	p, err := approval.ParentOf(ref, u)
	if err != nil {
		return err
	}

	g.in.Parents = append(g.in.Parents, p)

	return nil
}

// plan computes the plan, and reads what that asks for.
func (g *gathering) plan(ctx context.Context) (approval.Plan, error) {
	for range maxRounds {
		plan := approval.Compute(g.in)
		if !plan.Confirm && len(plan.Reads) == 0 {
			return plan, nil
		}

		if plan.Confirm {
			if err := g.confirm(ctx); err != nil {
				return plan, err
			}
		}

		for _, ref := range plan.Reads {
			u, err := g.Settler.Objects.Read(ctx, ref, true)

			switch {
			case errors.Is(err, object.ErrGone):
				g.in.Seen[ref] = approval.Seen{}
			case apierrors.IsForbidden(err):
				g.in.Seen[ref] = approval.Seen{Hidden: true}
			case object.Outdated(err):
				return plan, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
			case err != nil:
				log.FromContext(ctx).Info("Cannot see what is approved", "kind", ref.Kind, "object", ref.Name, "cause", err.Error())

				g.in.Seen[ref] = approval.Seen{Unknown: true}
			default:
				g.in.Seen[ref] = approval.Seen{Object: u}
			}
		}
	}

	return approval.Plan{}, fmt.Errorf("cannot plan approvals of PendingChange %q: %w", g.pch.Name, errRestless)
}
