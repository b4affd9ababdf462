// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
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

func (g *gathering) first(ctx context.Context, plan approval.Plan) error {
	return g.statuses(ctx, plan.First)
}

func (g *gathering) last(ctx context.Context, plan approval.Plan) error {
	return g.statuses(ctx, plan.Last)
}

// statuses writes statuses of ChangeApprovals as they were read. One that is withdrawn has none.
func (g *gathering) statuses(ctx context.Context, list []approval.Written) error {
	for _, w := range list {
		was := w.Approval
		if later := g.written[was.UID]; later != nil {
			was = later
		}

		out := was.DeepCopy()
		out.Status = w.Status

		err := g.Settler.Client.Status().Patch(ctx, out, object.MergeFrom(was), client.FieldOwner(object.FieldManager))
		if apierrors.IsNotFound(err) {
			continue
		}

		if err != nil {
			return fmt.Errorf("cannot write the status of ChangeApproval %q of namespace %q: %w", was.Name, was.Namespace, err)
		}

		g.written[was.UID] = out
		g.Settler.Metrics.count(was, out)
	}

	return nil
}

// remember writes down on the root what was made.
func (g *gathering) remember(ctx context.Context, plan approval.Plan) error {
	if plan.Remember == nil || g.root == nil {
		return nil
	}

	return g.annotate(ctx, g.root.GetUID(), v1alpha1.AnnotationApproved, allowance.FormatList(plan.Remember))
}

// parents writes the allowances of parents, and tells of them.
func (g *gathering) parents(ctx context.Context, plan approval.Plan) error {
	for _, w := range plan.Parents {
		u := g.objects[w.Ref.UID]
		if u == nil {
			continue
		}

		have, err := allowance.Parse(u)
		if err != nil {
			return fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
		}

		value := allowance.FormatList(w.Apply(have))
		if err := allowance.CheckSize(value); err != nil {
			return fmt.Errorf("cannot annotate %s %q: %w", u.GetKind(), u.GetName(), err)
		}

		if err := g.annotate(ctx, w.Ref.UID, v1alpha1.AnnotationAllowances, value); err != nil {
			return err
		}

		g.tell(ctx, u, w)
	}

	return nil
}

// annotate writes one annotation to an object as it was read, or takes it away for nil.
func (g *gathering) annotate(ctx context.Context, uid types.UID, key string, value any) error {
	return g.annotateAll(ctx, uid, map[string]any{key: value})
}

// annotateAll writes annotations to an object as it was read, or takes them away for nil. One that
// is gone needs none.
func (g *gathering) annotateAll(ctx context.Context, uid types.UID, annotations map[string]any) error {
	u := g.objects[uid]

	raw, err := json.Marshal(map[string]any{object.KeyMetadata: map[string]any{
		object.KeyVersion: u.GetResourceVersion(), object.KeyAnnotations: annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	out, patch := u.DeepCopy(), client.RawPatch(types.MergePatchType, raw)

	if stamp.AnnotatedByStatus(u) {
		err = g.Settler.Client.Status().Patch(ctx, out, patch, client.FieldOwner(object.FieldManager))
	} else {
		err = g.Settler.Client.Patch(ctx, out, patch, client.FieldOwner(object.FieldManager))
	}

	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot annotate %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if err == nil {
		g.objects[uid] = out // What is written to it next is of this version.
	}

	return nil
}

// tell records what was written to a parent, on that and on the root.
func (g *gathering) tell(ctx context.Context, parent *unstructured.Unstructured, w approval.ParentWrite) {
	about := []*unstructured.Unstructured{parent}
	if g.root != nil && g.root.GetUID() != parent.GetUID() {
		about = append(about, g.root)
	}

	logger := log.FromContext(ctx).WithValues("parent", parent.GetKind(), "parentName", parent.GetName())

	for _, grant := range w.Add {
		logger.Info("Approved a change", "approval", grant.Approval, "user", grant.User, "digest", grant.Digest)

		for _, u := range about {
			if grant.Decision == v1alpha1.DecisionBreakGlass {
				g.Settler.Events.Eventf(u, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonBreakGlass), actionApprove,
					"%s is allowed by %s alone, by ChangeApproval %q: %s", subject(grant), grant.User, grant.Approval, grant.Reason)

				continue
			}

			g.Settler.Events.Eventf(u, nil, corev1.EventTypeNormal, string(v1alpha1.EventReasonApproved), actionApprove, "%s", approvedNote(grant))
		}
	}

	for _, grant := range w.Remove {
		logger.Info("Took an approval away", "approval", grant.Approval, "used", grant.Used, "digest", grant.Digest)

		if !grant.Used {
			continue
		}

		for _, u := range about {
			g.Settler.Events.Eventf(u, nil, corev1.EventTypeNormal, string(v1alpha1.EventReasonApprovalUsed), actionUse,
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
func (g *gathering) remove(ctx context.Context, plan approval.Plan) error {
	for _, cha := range plan.Delete {
		err := g.Settler.Client.Delete(ctx, cha, client.Preconditions{UID: new(cha.GetUID()), ResourceVersion: new(cha.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete ChangeApproval %q of namespace %q: %w", cha.Name, cha.Namespace, err)
		}
	}

	return nil
}
