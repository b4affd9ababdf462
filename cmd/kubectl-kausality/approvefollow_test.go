// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// level is what waits at one moment: changes by field, each with a digest that is the field,
// and the states of approvals by digest, of the ChangeApproval that was made here.
type level struct {
	changes []string
	states  map[string]v1alpha1.ApprovalState
	gone    bool
}

func (l level) pending() *v1alpha1.PendingChange {
	p := &v1alpha1.PendingChange{}
	p.Name, p.Namespace = "p", "team"
	p.Spec.ObjectRef = v1alpha1.ObjectReference{APIVersion: "shop.example.org/v1", Kind: "Claim", Namespace: "team", Name: "db"}
	p.Status.Total, p.Status.Digest = int32(len(l.changes)), digestPrefix+strings.Join(l.changes, "")

	for _, field := range l.changes {
		p.Status.Changes = append(p.Status.Changes, v1alpha1.HeldChange{
			Ref: v1alpha1.ObjectReference{Kind: "Instance", Name: "i"}, Field: field, From: "1", To: "2", Digest: digestPrefix + field,
		})
	}

	for _, field := range sortedStates(l.states) {
		p.Status.Approvals = append(p.Status.Approvals, v1alpha1.PendingApproval{Name: "p-1", Digest: digestPrefix + field, State: l.states[field]})
	}

	return p
}

func sortedStates(m map[string]v1alpha1.ApprovalState) []string {
	return slices.Sorted(maps.Keys(m))
}

// TestWhatIsApprovedIsFollowedToItsEnd through what is pending one level below.
func TestWhatIsApprovedIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()

	const (
		granted = v1alpha1.ApprovalStateGranted
		applied = v1alpha1.ApprovalStateApplied
		twice   = "y\n" + "y\n"
	)

	type states = map[string]v1alpha1.ApprovalState

	for name, tc := range map[string]struct {
		levels []level
		opts   approveOptions
		answer string
		want   []string
		not    string
		made   int
		err    error
		// settled is for how long nothing may be pending before that is the end.
		settled time.Duration
	}{
		"OneLevel": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"a"}}, {states: states{"a": granted}}, {states: states{"a": applied}}},
			answer: "y\n", made: 1,
			want: []string{"Instance i a: 1 -> 2: made\nNothing is pending at Claim/db any more.\n"},
		},
		"TwoLevels": {
			levels: []level{
				{changes: []string{"a"}},
				{changes: []string{"a"}, states: states{"a": granted}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{states: states{"a": applied, "b": applied}},
			},
			answer: twice, made: 2,
			want: []string{"Instance i a: 1 -> 2: made\n", "Instance i b: 1 -> 2: made\nNothing is pending at Claim/db any more.\n"},
		},
		"AMomentOfNothingIsNotTheEnd": {
			levels: []level{
				{changes: []string{"a"}},
				{states: states{"a": applied}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{states: states{"a": applied, "b": applied}},
			},
			answer: twice, made: 2,
			want: []string{"Instance i b: 1 -> 2: made\nNothing is pending at Claim/db any more.\n"},
		},
		"SeveralMomentsOfNothingAreNotTheEnd": {
			levels: []level{
				{changes: []string{"a"}},
				{states: states{"a": applied}},
				{states: states{"a": applied}},
				{states: states{"a": applied}},
				{states: states{"a": applied}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{changes: []string{"b"}, states: states{"a": applied}},
				{states: states{"a": applied, "b": applied}},
			},
			answer: twice, made: 2, settled: 200 * time.Millisecond,
			want: []string{"Instance i b: 1 -> 2: made\nNothing is pending at Claim/db any more.\n"},
		},
		"TheNextLevelIsNotConfirmed": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"b"}, states: states{"a": applied}}},
			answer: "y\nn\n", made: 1, err: errDeclined,
		},
		"AProgramIsNotTakenFurtherThanItSaw": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"b"}, states: states{"a": applied}}},
			opts:   approveOptions{yes: true, digests: []string{"sha256:a"}}, made: 1, err: errMoreWaits,
		},
		"WhatWasLeftOutIsNotAskedAbout": {
			levels: []level{{changes: []string{"a", "b"}}, {changes: []string{"b"}, states: states{"a": applied}}},
			opts:   approveOptions{changes: []string{"a"}}, answer: "y\n", made: 1,
			want: []string{"All that was approved of Claim/db is made; still waiting: 1 change, see kubectl kausality pending claim.shop.example.org/db -n team\n"},
		},
		"ItIsTakenBackMeanwhile": {
			levels: []level{{changes: []string{"a"}}, {states: states{"a": v1alpha1.ApprovalStateSuperseded}}},
			answer: "y\n", made: 1, want: []string{"Instance i a: 1 -> 2: nothing asks for it any more\n"}, not: ": made", err: errNotMade,
		},
		"TheListGoesMeanwhile": {
			levels: []level{{changes: []string{"a"}}, {gone: true}}, answer: "y\n", made: 1, err: errListGone,
		},
		"TheListGoesAfterwards": {
			levels: []level{{changes: []string{"a"}}, {states: states{"a": applied}}, {gone: true}}, answer: "y\n", made: 1,
			settled: time.Minute, want: []string{": made\n", "Nothing is pending at Claim/db any more.\n"},
		},
		"SomebodyRejectsIt": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"a"}, states: states{"a": v1alpha1.ApprovalStateRejected}}},
			answer: "y\n", made: 1, err: errNotMade,
		},
		"TheRightIsLost": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"a"}, states: states{"a": v1alpha1.ApprovalStateNotAllowed}}},
			answer: "y\n", made: 1, err: errNotMade,
		},
		"ItTakesTooLong": {
			levels: []level{{changes: []string{"a"}}, {changes: []string{"a"}, states: states{"a": v1alpha1.ApprovalStateWaiting}}},
			answer: "y\n", opts: approveOptions{timeout: 50 * time.Millisecond}, made: 1, err: errFollowed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := fakeCluster()
			at := -1 // The last level stays.

			client.PrependReactor("get", "pendingchanges", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if get, ok := action.(clienttesting.GetAction); at < 0 && ok && get.GetName() == "p" {
					at = 0

					return true, encoded(t, tc.levels[0].pending()), nil // It is named.
				}

				l := tc.levels[at]
				at = min(at+1, len(tc.levels)-1)

				if l.gone {
					return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "p")
				}

				return true, encoded(t, l.pending()), nil
			})

			var out bytes.Buffer

			tc.opts.follow = true
			if tc.opts.timeout == 0 {
				tc.opts.timeout = time.Minute
			}

			d := approving(c, &out, tc.opts, tc.answer)
			d.now, d.settled = time.Now, tc.settled

			if err := d.decide(t.Context(), []string{"pendingchange/p"}); !errors.Is(err, tc.err) {
				t.Errorf("%v, want %v", err, tc.err)
			}

			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in %s", want, out.String())
				}
			}

			if tc.not != "" && strings.Contains(out.String(), tc.not) {
				t.Errorf("%q in %s", tc.not, out.String())
			}

			if diff := cmp.Diff(tc.made, strings.Count(made(t, client), "ChangeApproval")); diff != "" {
				t.Errorf("approvals made: -want, +got:\n%s", diff)
			}
		})
	}
}
