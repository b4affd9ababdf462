// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
)

func heldChange(field, from, to, reason string) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Field: field, From: from, To: to, Missing: reason}
}

func TestWhatAConditionSaysIsHeldReadsAsItWasSaid(t *testing.T) {
	t.Parallel()

	const reason = `Bucket "b" is edited by anna: spec.size; Bucket "b" has no allowance for it; ` +
		`policy "size" gives one when User hans changes spec.size, where CEL "object.a == 'x; Bucket y: z'" holds; ` +
		`UpgradeAllowance "w": and CEL "a"`

	all := []composition.Held{
		{Resource: "Object b-1", Change: heldChange("spec.forProvider.manifest.data.size", "20", "52", reason)},
		{Resource: "Object b-2", Change: heldChange("metadata.annotations[team]", "", "a (b)", "no")},
		{Resource: "Bucket b", Change: heldChange("spec.size", "20", "", reason)},
		{Resource: "Object of composed resource b-4", Change: heldChange(v1alpha1.MutationCreate, "", "", reason)},
		{Resource: "Object b-5", Change: heldChange(v1alpha1.MutationDelete, "", "", reason), Passed: true},
		{Resource: "Object b-6", Change: heldChange("spec.a", "1", "2", reason), Passed: true},
		{Resource: "Object b-7", Change: heldChange("(12 more)", "", "", "too many to list")},
	}

	for name, tc := range map[string]struct {
		reason string
		held   []composition.Held
		want   []composition.Held
		more   int
	}{
		"Nothing": {reason: "Nothing is held."},
		"One":     {reason: "One change is.", held: all[:1], want: all[:1]},
		"Five":    {reason: "As many as are listed are.", held: all[:5], want: all[:5]},
		"Rest":    {reason: "Forms that stand for others.", held: all[4:], want: all[4:]},
		"More":    {reason: "What is not listed is a count.", held: all[:6], want: all[:5], more: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			xr := object(t, edit(t, steadyXR, "ALLOWANCES", "[]"))
			s := composition.Summarize(xr, composition.Findings{Ready: true, Composed: 1, Held: tc.held, Problems: []string{"a", "b"}})

			got, more, ok := composition.HeldIn(s.Message + " [status 0123456789abcdef +2]")
			if diff := cmp.Diff(tc.want, got); diff != "" || more != tc.more || !ok {
				t.Errorf("%s\nHeldIn of %q: %d more, %t, -want, +got:\n%s", tc.reason, s.Message, more, ok, diff)
			}
		})
	}
}

func TestAConditionThatSaysSomethingElseIsNotReadInParts(t *testing.T) {
	t.Parallel()

	for _, message := range []string{
		"generation 3: settled; 2 held: Object a: spec.size stays 1 (asked: 2): no",
		"generation 3: settled; 1 held: what an older version wrote",
	} {
		if held, _, ok := composition.HeldIn(message); ok {
			t.Errorf("HeldIn of %q: %v", message, held)
		}
	}
}
