// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// soon is when it is looked again at what is about to come to its end.
const soon = time.Second

// forgetEdits takes the record of edits away of which all that follows was approved and made, once,
// when it comes to its end: that waits until the root's controller has seen the last edit. It
// returns when to look again.
func (g *gathering) forgetEdits(ctx context.Context, status *v1alpha1.PendingChangeStatus) (time.Duration, error) {
	if g.root == nil || g.pch.Status.FinishedAt != nil {
		return 0, nil
	}

	before, ok := approval.EditsBefore(status, g.in.Approvals)
	if !ok || resource.Annotation(g.root, v1alpha1.AnnotationHeld) == "" {
		return 0, nil
	}

	was, err := allowance.ParseStored(g.root)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s %q: %w", g.root.GetKind(), g.root.GetName(), err)
	}

	if len(was) == 0 {
		return 0, nil
	}

	if p, settles := resource.ProgressOf(g.root); settles && p.Settled.Generation < resource.Generation(g.root) {
		status.FinishedAt = nil

		return soon, nil
	}

	ref := pending.RefTo(g.root)

	live, err := g.Settler.Objects.Read(ctx, ref, true)
	if errors.Is(err, object.ErrGone) {
		return 0, nil
	}

	if err != nil {
		return 0, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
	}

	edits, err := allowance.ParseStored(live)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s %q: %w", ref.Kind, ref.Name, err)
	}

	left := approval.EditsLeft(edits, was, before)
	if len(left) == len(edits) {
		return 0, nil
	}

	g.objects[ref.UID] = live

	held, _ := allowance.ParseHeld(live) // It is readable, as what is stored is.

	return 0, g.annotate(ctx, ref.UID, v1alpha1.AnnotationHeld, orNil(allowance.FormatHeld(left, held)))
}
