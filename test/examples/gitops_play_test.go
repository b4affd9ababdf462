// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// play has what is in Git changed, one commit after the other. Whatever happens the tool has to
// find, after a while, that all is as it is in Git.
func (s *storeFromGit) play(t *testing.T) {
	t.Helper()

	for _, step := range []struct {
		title string
		run   func(*testing.T)
	}{
		{"A store is built up", s.isBuiltUp},
		{"An approval lets a change through, once, and the tools rest", s.isApprovedOnce},
		{"It is pruned once it was used, and nothing changes", s.isPruned},
		{"A person approves while the tool syncs, and there is no fight", s.isApprovedByAPerson},
		{"What was used grants nothing when it is applied from Git once more", s.isAppliedOnceMore},
		{"One service account for both is refused", s.isNotApprovedByTheSame},
		{"What is pruned before it is used is withdrawn", s.isWithdrawn},
		{"Where nothing waits that has its digest it is refused", s.isRefused},
	} {
		if !t.Run(step.title, step.run) {
			t.FailNow()
		}
	}
}

// isBuiltUp has it made, and settle.
func (s *storeFromGit) isBuiltUp(t *testing.T) {
	t.Helper()

	s.changes.commit(t, s.store("small"))
	s.eventually(t, "a small store", s.outside("small"), s.says(": settled"), s.gate("Observe"), s.changes.says(inSync))
	s.rest(t)
}

// isApprovedOnce has a change, and then its approval, applied by two service accounts.
func (s *storeFromGit) isApprovedOnce(t *testing.T) {
	t.Helper()

	before, generation := auditFromNow(t), s.generation(t)

	s.changes.commit(t, s.store("large"))

	pch := s.held(t, "small", "large")
	s.first = pch.Status.Digest

	s.approvals.commit(t, s.approval(t, "1", s.first))
	s.eventually(t, "a large store", s.outside("large"), s.becomes("1", v1alpha1.ApprovalStateApplied), s.says(": settled"))
	s.rest(t)

	s.fights(t, before, generation)
	s.wrote(t, before, approvalsUser, "changeapprovals", s.name+"-1", 1)
	s.wrote(t, before, approvalsUser, "", "", 1)

	s.changes.finds(t, s.changes.file, s.tool.same)
	s.approvals.finds(t, s.approvals.file, s.tool.same)
}

// isPruned takes the approval out of Git.
func (s *storeFromGit) isPruned(t *testing.T) {
	t.Helper()

	before, generation := auditFromNow(t), s.generation(t)

	s.approvals.commit(t)
	s.eventually(t, "no approval", s.gone("1"), s.approvals.says(inSync))
	s.rest(t)

	s.wrote(t, before, approvalsUser, "changeapprovals", s.name+"-1", 1)
	s.wrote(t, before, storesUser, "", "", 0)

	if after := s.generation(t); after != generation {
		t.Errorf("generation %d of the store, and %d before", after, generation)
	}

	s.eventually(t, "a large store", s.outside("large"), s.says(": settled"))
}

// isApprovedByAPerson has a person approve the way back.
func (s *storeFromGit) isApprovedByAPerson(t *testing.T) {
	t.Helper()

	before, generation := auditFromNow(t), s.generation(t)

	s.changes.commit(t, s.store("small"))

	pch := s.held(t, "large", "small")
	s.rest(t) // Held or not, it is as in Git.

	s.hans(t, "kubectl kausality approve store/"+s.name+" -n "+team+" --reason CHG-2 --yes --digest "+pch.Status.Digest)
	s.eventually(t, "a small store", s.outside("small"), s.says(": settled"))
	s.rest(t)

	s.fights(t, before, generation)
	s.wrote(t, before, approvalsUser, "", "", 0)
}

// isAppliedOnceMore asks for the first change again, and applies its approval again.
func (s *storeFromGit) isAppliedOnceMore(t *testing.T) {
	t.Helper()

	s.changes.commit(t, s.store("large"))

	if pch := s.held(t, "small", "large"); pch.Status.Digest != s.first {
		t.Errorf("the same change has another digest: %s, and %s before", pch.Status.Digest, s.first)
	}

	s.approvals.commit(t, s.approval(t, "1", s.first))
	s.eventually(t, "an approval that grants nothing", s.becomes("1", v1alpha1.ApprovalStateSuperseded))
	s.rest(t)
	s.eventually(t, "a store that is held", s.outside("small"), s.says("1 change held"))

	s.approvals.commit(t)
	s.eventually(t, "no approval", s.gone("1"), s.approvals.says(inSync))
}

// isNotApprovedByTheSame applies a change and its approval as one service account.
func (s *storeFromGit) isNotApprovedByTheSame(t *testing.T) {
	t.Helper()

	pch := s.held(t, "small", "large")

	if s.tool.keepsApart != "" {
		s.changes.commit(t, s.store("large"), s.approval(t, "own", pch.Status.Digest))
		s.eventually(t, "what the tool says", s.changes.says(syncFailed, s.tool.keepsApart))
		s.changes.commit(t, s.store("large"))
	}

	both := s.tool.both(t, s.shown)
	both.commit(t, s.approval(t, "own", pch.Status.Digest))
	s.eventually(t, "what the tool says", both.says(syncFailed, "requested the change and cannot approve it",
		"with GitOps, change and approval need different identities"), s.gone("own"))
}

// isWithdrawn takes an approval out of Git that was not used.
func (s *storeFromGit) isWithdrawn(t *testing.T) {
	t.Helper()

	pch := s.held(t, "small", "large")

	// Somebody rejects it meanwhile, so that it waits.
	no := s.approval(t, "no", pch.Status.Digest)
	with("Reject", "spec", "decision")(no)

	hans := world.ConnectAs(t, running, "hans")
	if err := hans.Create(t.Context(), no); err != nil {
		t.Fatal(err)
	}

	s.eventually(t, "a rejection", s.becomes("no", v1alpha1.ApprovalStateRejected))
	s.approvals.commit(t, s.approval(t, "3", pch.Status.Digest))
	s.eventually(t, "an approval that waits", s.becomes("3", v1alpha1.ApprovalStateRejected), s.approvals.says(inSync))
	s.approvals.commit(t)
	s.eventually(t, "no approval", s.gone("3"), s.approvals.says(inSync))

	if err := hans.Delete(t.Context(), no); err != nil {
		t.Fatal(err)
	}

	s.eventually(t, "nobody who has decided about it", func(ctx context.Context) error {
		now, err := s.pending(ctx)
		if err != nil {
			return err
		}

		if a := now.Status.Approvals; slices.ContainsFunc(a, func(a v1alpha1.PendingApproval) bool { return a.Digest == pch.Status.Changes[0].Digest }) {
			return fmt.Errorf("%+v: %w", a, world.ErrOther)
		}

		return nil
	}, s.outside("small"), s.says("1 change held"))
	s.approvals.commit(t, s.approval(t, "4", pch.Status.Digest))
	s.eventually(t, "a large store", s.outside("large"), s.becomes("4", v1alpha1.ApprovalStateApplied), s.says(": settled"), s.tracedTo("4"))
	s.rest(t)
}

// isRefused applies the first approval once more where nothing waits.
func (s *storeFromGit) isRefused(t *testing.T) {
	t.Helper()

	s.approvals.commit(t, s.approval(t, "1", s.first))
	s.eventually(t, "what the tool says", s.approvals.says(syncFailed, "other changes are held"), s.gone("1"))
	s.approvals.commit(t)
	s.eventually(t, "no approval", s.gone("4"), s.approvals.says(inSync))
	s.rest(t)
}
