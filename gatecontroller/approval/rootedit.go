// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Judge decides about requests that the manager makes by itself.
type Judge interface {
	// Decide decides about a request, of which it completes what there is to decide by.
	Decide(ctx context.Context, req request.Request) (decision.Decision, error)
}

// edits lets edits of the root through that are approved: in one write it gets what policies give for
// them, why, and the memory of the approvals, and loses the record of the edits.
func (w *writer) edits(ctx context.Context, list []approval.Grant) error {
	u, err := w.settler.live(ctx, w.root) // The cache does not have all of it.
	if err != nil || u == nil {
		return err
	}

	if list, err = stillRecorded(u, list); err != nil || len(list) == 0 {
		return err // It is looked at again once that is heard of.
	}

	w.objects[u.GetUID()] = u

	approved, err := allowance.ParseApproved(u)
	if err != nil {
		return fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	req := request.Request{Operation: request.OperationUpdate, Old: u, New: u.DeepCopy()}
	req.User.Name = list[0].User

	for _, e := range list {
		req.Approved = append(req.Approved, request.ApprovedEdit{Digest: e.Digest, Initiator: e.User, Hop: e.Hop})
		approved = append(approved, v1alpha1.ApprovedChange{Approval: e.Approval, UID: e.UID, Digest: e.Digest})
	}

	d, err := w.settler.Judge.Decide(ctx, req)
	if err != nil {
		return fmt.Errorf("cannot let edits of %s %q through: %w", u.GetKind(), u.GetName(), err)
	}

	if more := len(approved) - v1alpha1.MaxApproved; more > 0 {
		approved = approved[more:]
	}

	annotations := map[string]any{v1alpha1.AnnotationApproved: allowance.FormatList(approved)}

	for _, key := range []string{
		v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace, v1alpha1.AnnotationRecord, v1alpha1.AnnotationHeld,
	} {
		if was, is := resource.Annotation(u, key), resource.Annotation(d.Object, key); was != is {
			annotations[key] = orNil(is)
		}
	}

	if err := w.annotate(ctx, u.GetUID(), annotations); err != nil {
		return err
	}

	w.tell(ctx, u, approval.ParentWrite{Ref: list[0].Ref, Add: list})

	return nil
}

// stillRecorded are those of approved edits that an object records, of the very value.
func stillRecorded(u *unstructured.Unstructured, edits []approval.Grant) ([]approval.Grant, error) {
	recorded, err := input.RecordedEdits(u)

	return slices.DeleteFunc(slices.Clone(edits), func(g approval.Grant) bool {
		return !slices.ContainsFunc(recorded, func(e v1alpha1.HeldChange) bool { return e.Digest == g.Digest })
	}), err
}

// orNil is the value of an annotation in a patch: nothing takes it away.
func orNil(text string) any {
	if text == "" {
		return nil
	}

	return text
}
