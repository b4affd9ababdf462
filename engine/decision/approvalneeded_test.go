// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestAsManyApproveAsTheEditNeedsThatNeedsTheMost(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		edits  []v1alpha1.HeldChange
		want   int32
	}{
		"NoEdit":      {reason: "Somebody has to approve also what nobody asks for.", want: 1},
		"Unallowed":   {reason: "What anybody stored takes one.", edits: []v1alpha1.HeldChange{by("anna", 0)}, want: 1},
		"One":         {reason: "One is one.", edits: []v1alpha1.HeldChange{by("anna", 1)}, want: 1},
		"Most":        {reason: "The most counts.", edits: []v1alpha1.HeldChange{by("anna", 2), by("hans", 4), by("otto", 0)}, want: 4},
		"Unknown":     {reason: "Who approves may be who made it.", edits: []v1alpha1.HeldChange{by("unknown", 0)}, want: 2},
		"UnknownMost": {reason: "So it takes one more than by policy.", edits: []v1alpha1.HeldChange{by("anna", 3), by("unknown", 3)}, want: 4},
		"UnknownLess": {reason: "It takes one more itself, and no other edit does.", edits: []v1alpha1.HeldChange{by("anna", 3), by("unknown", 0)}, want: 3},
		"Unreadable":  {reason: "Whose edits are in a record that cannot be read nobody knows.", edits: []v1alpha1.HeldChange{by("(unknown)", 0)}, want: 2},
		"Nobody":      {reason: "Nor whose an edit is without a user.", edits: []v1alpha1.HeldChange{by("", 0)}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := authority.RequiredApprovals(tc.edits); got != tc.want {
				t.Errorf("%s\n%d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWhatIsLeftOutOfTheRecordTakesTheMostApprovals of all that it stands for.
func TestWhatIsLeftOutOfTheRecordTakesTheMostApprovals(t *testing.T) {
	t.Parallel()

	const last = v1alpha1.MaxStored + 10 // Edits are recorded in the order of their fields.

	old := `{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {}}`

	spec, fields := make([]string, 0, last), make([]string, 0, last)

	for i := range last {
		spec = append(spec, fmt.Sprintf("f%03d: x", i))

		if i != v1alpha1.MaxStored+2 {
			fields = append(fields, fmt.Sprintf("spec.f%03d", i))
		}
	}

	req := requestFor(t, policy.User{Name: "hans", Groups: []string{"team"}}, old, `{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {`+strings.Join(spec, ", ")+`}}`, "")
	req.Basis.Policies = set(t, fmt.Sprintf(`
kind: AllowancePolicy
metadata: {name: most}
spec:
  approval: {required: 5}
  match: {kind: Widget, fields: [spec.f%03d]}
  subjects: [{kind: Group, name: team, mayInitiate: true}]
  allow: []
---
kind: AllowancePolicy
metadata: {name: all}
spec:
  approval: {required: 2}
  match: {kind: Widget, fields: [%s]}
  subjects: [{kind: Group, name: team, mayInitiate: true}]
  allow: []
`, v1alpha1.MaxStored+2, strings.Join(fields, ", ")))

	d := decision.Decide(req)

	edits, err := allowance.ParseStored(d.Object)
	if err != nil || len(edits) != v1alpha1.MaxStored {
		t.Fatalf("%d edits: %v", len(edits), err)
	}

	if e := edits[len(edits)-1]; e.Field != "(more)" || e.Stored.Approvals != 5 {
		t.Errorf("the last edit is %+v", e)
	}

	if got := authority.RequiredApprovals(edits); got != 5 {
		t.Errorf("%d have to approve, want 5", got)
	}
}

// by is an edit of a user, of which so many have to approve what follows.
func by(user string, approvals int32) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Cause: &v1alpha1.Cause{User: user}, Stored: &v1alpha1.StoredChange{Approvals: approvals}}
}
