// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Actions of events.
const (
	actionApprove = "Approve"
	actionUse     = "Use"
)

// writer writes what becomes of the ChangeApprovals of one PendingChange.
type writer struct {
	settler *Settler

	root *unstructured.Unstructured
	// objects are those that were read, and may be written, by UID.
	objects map[types.UID]*unstructured.Unstructured
	// written are ChangeApprovals whose status was written, by UID.
	written map[types.UID]*v1alpha1.ChangeApproval
}

// write carries out a plan, in the order that [approval.Plan] demands.
func (w *writer) write(ctx context.Context, plan approval.Plan) error {
	// 1. What ChangeApprovals come to, but for what ends.
	if err := w.statuses(ctx, plan.First); err != nil {
		return err
	}

	// 2. The memory of the root.
	if plan.Remember != nil && w.root != nil {
		value := allowance.FormatList(plan.Remember)
		if err := w.annotate(ctx, w.root.GetUID(), map[string]any{v1alpha1.AnnotationApproved: value}); err != nil {
			return err
		}
	}

	// 3. What parents carry.
	for _, p := range plan.Parents {
		if err := w.parent(ctx, p); err != nil {
			return err
		}
	}

	if len(plan.Edits) > 0 && w.root != nil {
		if err := w.edits(ctx, plan.Edits); err != nil {
			return err
		}
	}

	// 4. The ends of ChangeApprovals.
	if err := w.statuses(ctx, plan.Last); err != nil {
		return err
	}

	return w.remove(ctx, plan.Delete)
}

// statuses writes statuses of ChangeApprovals as they were read. One that is withdrawn has none.
func (w *writer) statuses(ctx context.Context, list []approval.Written) error {
	for _, s := range list {
		was := cmp.Or(w.written[s.Approval.UID], s.Approval)
		out := was.DeepCopy()
		out.Status = s.Status

		err := w.settler.Client.Status().Patch(ctx, out, object.MergeFrom(was), client.FieldOwner(object.FieldManager))
		if apierrors.IsNotFound(err) {
			continue
		}

		if err != nil {
			return fmt.Errorf("cannot write the status of ChangeApproval %q of namespace %q: %w", was.Name, was.Namespace, err)
		}

		w.written[was.UID] = out
		w.settler.Metrics.count(was, out)
	}

	return nil
}

// parent writes the allowances of a parent, and tells of them.
func (w *writer) parent(ctx context.Context, p approval.ParentWrite) error {
	u := w.objects[p.Ref.UID]

	have, err := allowance.Parse(u)
	if err != nil {
		return fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	value := allowance.FormatList(p.Apply(have))
	if err := allowance.CheckSize(value); err != nil {
		return fmt.Errorf("cannot annotate %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if err := w.annotate(ctx, p.Ref.UID, map[string]any{v1alpha1.AnnotationAllowances: value}); err != nil {
		return err
	}

	w.tell(ctx, u, p)

	return nil
}

// annotate writes annotations to an object as it was read, or takes them away for nil. One that
// is gone needs none.
func (w *writer) annotate(ctx context.Context, uid types.UID, annotations map[string]any) error {
	u := w.objects[uid]

	raw, err := json.Marshal(map[string]any{object.KeyMetadata: map[string]any{
		object.KeyVersion: u.GetResourceVersion(), object.KeyAnnotations: annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	out, patch := u.DeepCopy(), client.RawPatch(types.MergePatchType, raw)

	if stamp.AnnotatedByStatus(u) {
		err = w.settler.Client.Status().Patch(ctx, out, patch, client.FieldOwner(object.FieldManager))
	} else {
		err = w.settler.Client.Patch(ctx, out, patch, client.FieldOwner(object.FieldManager))
	}

	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot annotate %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if err == nil {
		w.objects[uid] = out // What is written to it next is of this version.
	}

	return nil
}

// tell records what was written to a parent, on that and on the root.
func (w *writer) tell(ctx context.Context, parent *unstructured.Unstructured, p approval.ParentWrite) {
	about := []*unstructured.Unstructured{parent}
	if w.root != nil && w.root.GetUID() != parent.GetUID() {
		about = append(about, w.root)
	}

	logger := log.FromContext(ctx).WithValues("parent", parent.GetKind(), "parentName", parent.GetName())

	for _, grant := range p.Add {
		logger.Info("Approved a change", "approval", grant.Approval, "user", grant.User, "digest", grant.Digest)

		for _, u := range about {
			if grant.Decision == v1alpha1.DecisionBreakGlass {
				w.settler.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonBreakGlass), actionApprove,
					"%s is allowed by %s alone, by ChangeApproval %q: %s", subject(grant), grant.User, grant.Approval, grant.Reason)

				continue
			}

			w.settler.Events.Eventf(u, nil, corev1.EventTypeNormal, string(v1alpha1.EventReasonApproved), actionApprove, "%s", approvedNote(grant))
		}
	}

	for _, grant := range p.Remove {
		logger.Info("Took an approval away", "approval", grant.Approval, "used", grant.Used, "digest", grant.Digest)

		if !grant.Used {
			continue
		}

		for _, u := range about {
			w.settler.Events.Eventf(u, nil, corev1.EventTypeNormal, string(v1alpha1.EventReasonApprovalUsed), actionUse,
				"%s was applied: %s approved it by ChangeApproval %q", subject(grant), grant.User, grant.Approval)
		}
	}
}

func approvedNote(grant approval.Grant) string {
	note := fmt.Sprintf("%s is approved by %s, by ChangeApproval %q", subject(grant), grant.User, grant.Approval)
	if grant.Reason != "" {
		note += ": " + grant.Reason
	}

	return note
}

// subject is what a grant is about.
func subject(grant approval.Grant) string {
	text := grant.Field
	if grant.Ref.Kind != "" {
		text = strings.TrimSpace(fmt.Sprintf("%s of %s %s", grant.Field, grant.Ref.Kind, grant.Ref.Name))
	}

	return text
}

// remove deletes ChangeApprovals that are old, if nobody has changed them since.
func (w *writer) remove(ctx context.Context, list []*v1alpha1.ChangeApproval) error {
	for _, cha := range list {
		err := w.settler.Client.Delete(ctx, cha, client.Preconditions{UID: new(cha.GetUID()), ResourceVersion: new(cha.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete ChangeApproval %q of namespace %q: %w", cha.Name, cha.Namespace, err)
		}
	}

	return nil
}
