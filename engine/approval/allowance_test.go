// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

func format(list []v1alpha1.Allowance) string { return allowance.FormatList(list) }

func TestAnApprovalGivesOneAllowanceAndOneForWhatFollows(t *testing.T) {
	e := entry(1)
	e.Follows = []string{"Update"}
	cha := by("a", "berta", 1)
	cha.Spec.Reason = "INFRA-1"

	got := format(approval.Allowances(e, &cha, 7, []string{"carl", "dora"}))
	trace := `  trace:
  - kind: ChangeApproval
    namespace: team-a
    name: a
    generation: 1
    field: spec
    attestations:
      approvers: carl, dora
      digest: ` + sum(1) + `
      reason: INFRA-1
      requester: anna
`
	want := `- apiGroup: rds.example.org
  kind: Instance
  mutation: spec.forProvider.size
  generation: 7
  id: "7.0"
  initiator: berta
  source:
    type: Approval
    name: a
  digest: ` + sum(1) + `
  approval: uid-a
` + trace + `- relation: External
  mutations:
  - Update
  generation: 7
  id: "7.0"
  initiator: berta
  source:
    type: Approval
    name: a
  digest: ` + sum(1) + `
  approval: uid-a
` + trace

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	// Where nothing follows, and the parent is in the ChangeApproval's namespace.
	e.Follows, e.Parent.Namespace = nil, "team-a"
	if list := approval.Allowances(e, &cha, 7, nil); len(list) != 1 || list[0].Trace[0].Namespace != nil {
		t.Errorf("got %+v", list)
	}

	// A long reason is cut: 100 changes may be approved at once.
	cha.Spec.Reason = strings.Repeat("ü", 500)
	if got := approval.Allowances(e, &cha, 7, nil)[0].Trace[0].Attestations[v1alpha1.AttestationReason]; got != strings.Repeat("ü", 64)+"..." {
		t.Errorf("the reason is %q", got)
	}
}

func TestAChildShowsTheUseOfEachChangeByItself(t *testing.T) {
	cha, other := by("a", "berta", 1, 2), by("b", "berta", 1)
	of := func(cha v1alpha1.ChangeApproval, n int) v1alpha1.Allowance {
		return approval.Allowances(entry(n), &cha, 3, nil)[0]
	}
	u := child(1, showing(&cha, 1)).Object

	if !approval.Used(u, of(cha, 1)) {
		t.Error("what was used is not shown")
	}

	if approval.Used(u, of(cha, 2)) {
		t.Error("another change of the same ChangeApproval is taken for used")
	}

	if approval.Used(u, of(other, 1)) {
		t.Error("another ChangeApproval of the same change is taken for used")
	}

	if approval.Used(child(1, nil).Object, of(cha, 1)) {
		t.Error("an object without a record shows a use")
	}
}
