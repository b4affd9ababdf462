// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// soon is when it is looked again at what is about to come to its end.
const soon = time.Second

// forgetEdits takes the record of edits away of which all that follows was approved and made, once,
// when it comes to its end: that waits until the root's controller has seen the last edit. It
// returns when to look again.
func (w *writer) forgetEdits(
	ctx context.Context, status *v1alpha1.PendingChangeStatus, approvals []v1alpha1.ChangeApproval,
) (time.Duration, error) {
	before, ok := approval.EditsBefore(status, approvals)
	if !ok || resource.Annotation(w.root, v1alpha1.AnnotationHeld) == "" {
		return 0, nil
	}

	was, err := allowance.ParseStored(w.root)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s %q: %w", w.root.GetKind(), w.root.GetName(), err)
	}

	if len(was) == 0 {
		return 0, nil
	}

	if p, settles := resource.ProgressOf(w.root); settles && p.Settled.Generation < resource.Generation(w.root) {
		status.FinishedAt = nil

		return soon, nil
	}

	live, err := w.settler.live(ctx, w.root)
	if err != nil || live == nil {
		return 0, err
	}

	edits, err := allowance.ParseStored(live)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s %q: %w", live.GetKind(), live.GetName(), err)
	}

	left := approval.EditsLeft(edits, was, before)
	if len(left) == len(edits) {
		return 0, nil
	}

	w.objects[live.GetUID()] = live

	held, _ := allowance.ParseHeld(live) // It is readable, as what is stored is.
	value := orNil(allowance.FormatHeld(left, held))

	return 0, w.annotate(ctx, live.GetUID(), map[string]any{v1alpha1.AnnotationHeld: value})
}
