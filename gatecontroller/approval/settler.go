// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
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

// Settle completes the status of a PendingChange, which says what is held below a root: by its
// approvals, the conditions Approved and Applied, and no FinishedAt as long as something is
// under way. It writes what approvals grant and what has become of them, and says when to look
// again though nothing happens; zero is for never. The error may be a conflict, where something
// has changed since it was read. Root is nil where there is none any more.
func (s *Settler) Settle(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus,
) (time.Duration, error) {
	// 1. What is there?
	in, objects, err := s.read(ctx, root, pch, status)
	if err != nil {
		return 0, err
	}

	// 2. What becomes of it? What cannot be undone is planned by what is so now.
	plan, err := approval.Compute(ctx, in)
	if err == nil && plan.Unconfirmed {
		if in, err = s.readLive(ctx, in, root, pch); err == nil {
			plan, err = approval.Compute(ctx, in)
		}
	}

	if err != nil {
		return 0, err
	}

	if plan.Failed != nil {
		log.FromContext(ctx).Error(plan.Failed, "Cannot ask who may decide about changes; trying again")
	}

	// 3. Write it.
	w := &writer{settler: s, root: root, objects: objects, written: map[types.UID]*v1alpha1.ChangeApproval{}}
	if err := w.write(ctx, plan); err != nil {
		return 0, err
	}

	plan.Complete(status)

	// 4. What was approved is no edit any more that nobody allowed.
	if root == nil || pch.Status.FinishedAt != nil {
		return plan.Again, nil
	}

	again, err := w.forgetEdits(ctx, status, in.Approvals)
	if err != nil {
		return 0, err
	}

	if again > 0 && (plan.Again == 0 || again < plan.Again) {
		return again, nil
	}

	return plan.Again, nil
}

// live reads an object from the API server; nil where it is gone.
func (s *Settler) live(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := pending.RefTo(u)

	out, err := s.Objects.Read(ctx, ref, true)
	if errors.Is(err, object.ErrGone) {
		return nil, nil //nolint:nilnil // As said above.
	}

	if err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
	}

	return out, nil
}
