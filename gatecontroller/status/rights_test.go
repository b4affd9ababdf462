// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAKindThatMayNotBeReadIsNotWatchedAndOthersAre(t *testing.T) {
	have := &fixture.Roles{Of: map[string]bool{"configmaps": true}, Now: time.Unix(0, 0)}
	r := NewRights(have.Access())

	if got := r.Readable(t.Context(), fixture.BuiltInAndCustom()); len(got) != 1 || got[0].Resource != "configmaps" {
		t.Errorf("watched: %v, want configmaps", got)
	}

	// What is needed of what is watched is missed as well, though no policy names it;
	// CompositionRevisions are only read.
	revision := kind.Served{GVK: resource.RevisionKind().WithVersion("v1"), Resource: "compositionrevisions"}
	read := access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return asked.Resource == "compositionrevisions" && asked.Verb != "patch", nil
	}, func() time.Time { return have.Now })

	r = NewRights(read)
	r.Refresh(t.Context(), admission.Config{}, nil, append(fixture.BuiltInAndCustom(), revision))

	if len(r.missing) != 2 || right.Has(r.missing, revision.GroupResource()) {
		t.Errorf("lacks: %v", r.missing)
	}
}

// TestTheRightToWriteAStatusIsMissedOfXRs as their conditions say it where the function does not run any more, and of
// Deployments, which are annotated by it.
func TestTheRightToWriteAStatusIsMissedOfXRs(t *testing.T) {
	r := NewRights(access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return asked.Resource != "*" && !strings.HasSuffix(asked.Resource, "/status"), nil
	}, time.Now))
	r.Refresh(t.Context(), admission.Config{}, nil, fixture.ServedKinds())

	got := make([]string, 0, len(r.missing))
	for _, m := range r.missing {
		got = append(got, m.Need.Resource)
	}

	if diff := cmp.Diff([]string{"deployments", "xdatabases"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
