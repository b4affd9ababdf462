// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

func TestAKindThatMayNotBeReadIsNotWatchedAndOthersAre(t *testing.T) {
	have := &roles{of: map[string]bool{"configmaps": true}, now: time.Unix(0, 0)}
	r := newRights(have.access())

	if got := r.readable(t.Context(), builtInAndCustom()); len(got) != 1 || got[0].resource != "configmaps" {
		t.Errorf("watched: %v, want configmaps", got)
	}

	// What is needed of what is watched is missed as well, though no policy names it;
	// CompositionRevisions are only read.
	revision := servedKind{gvk: resource.RevisionKind().WithVersion("v1"), resource: "compositionrevisions"}
	read := access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return asked.Resource == "compositionrevisions" && asked.Verb != "patch", nil
	}, func() time.Time { return have.now })

	r = newRights(read)
	r.look(t.Context(), wanted{}, nil, append(builtInAndCustom(), revision))

	if len(r.lacks) != 2 || right.Has(r.lacks, revision.groupResource()) {
		t.Errorf("lacks: %v", r.lacks)
	}
}
