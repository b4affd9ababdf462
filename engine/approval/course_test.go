// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

const (
	granted  = v1alpha1.ApprovalStateGranted
	waiting  = v1alpha1.ApprovalStateWaiting
	rejected = v1alpha1.ApprovalStateRejected
)

// carried is an input in which the XR carries an approval of change 1, and reports how far it
// is; empty where it does not.
func carried(state v1alpha1.ApprovalUseState, held bool, list ...v1alpha1.ChangeApproval) approval.Input {
	in := input()
	if held {
		in = input(1)
	}

	in.Approvals = list
	seenBy(&in)[childRef(1)] = child(1, nil)
	a := by("a", "berta", 1)
	xr(&in).Allowances = append([]v1alpha1.Allowance{{Kind: "Instance", Mutation: "spec.b", Policy: "p", Initiator: "hans"}}, carrying(a, 1)...)

	if state != "" {
		xr(&in).List.Approvals = []v1alpha1.ApprovalUse{reports(a, 1, state)}
	}

	return in
}

func TestWhatIsGrantedIsFollowedToItsEnd(t *testing.T) {
	a := recorded(by("a", "berta", 1), granted)
	old := recorded(later(by("a", "berta", 1), -24*time.Hour), granted)

	check(t, map[string]planCase{
		"It waits for the function": {
			reason: "Nothing is reported, and nothing done.", in: func() approval.Input { return carried("", true, a) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is held for another reason": {
			reason: "The message says where to look.", in: func() approval.Input { return carried(v1alpha1.ApprovalWaiting, true, a) },
			want:     said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"a/1": "see the conditions of XDatabase db-x"},
		},
		"What a person is to make again is asked for by no pipeline": {
			reason: "The webhook holds it, and the function asks for nothing.", in: func() approval.Input { return carried(v1alpha1.ApprovalAbsent, true, a) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is being made": {
			reason: "It is not held any more, and not over.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false, a) },
			want:     said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"a/1": "cannot be withdrawn"},
		},
		"It expires while it is being made": {
			reason: "It is too late for that.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false, old) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is withdrawn while it is being made": {
			reason: "It is too late for that, too.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false) },
			want:     said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"a/1": "withdrawn while the change was being applied"},
		},
		"It is rejected while it is being made": {
			reason: "The rejection is too late.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false, a, rejecting("dora", 1)) },
			want:     said{States: map[string]string{"a/1": "Granted", "r/1": "Superseded"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"r/1": `too late: the change is being made already, by ChangeApproval "a"`},
		},
		"Somebody approves what is being made": {
			reason: "It grants nothing.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false, a, by("b", "carl", 1)) },
			want: said{States: map[string]string{"a/1": "Granted", "b/1": "Superseded"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It was made": {
			reason: "It is remembered, and the allowance goes.", in: func() approval.Input { return carried(v1alpha1.ApprovalUsed, false, a) },
			want: said{
				States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"},
				Approved: "Approved", Applied: "Applied",
			},
		},
		"It was made for all who have approved it": {
			reason: "Both count, and neither is to be used again.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalUsed, false, a, recorded(by("b", "carl", 1), granted), recorded(by("c", "no-dora", 1), v1alpha1.ApprovalStateNotAllowed))
			},
			want: said{
				States: map[string]string{"a/1": "Applied", "b/1": "Applied", "c/1": "NotAllowed"}, Remove: []string{"a/1 from xr, used"},
				Remember: []string{"a/1", "b/1"}, Approved: "Approved", Applied: "Applied",
			},
		},
		"It was made, and is held again": {
			reason: "Somebody has put the old value back: it takes another approval.", in: func() approval.Input { return carried(v1alpha1.ApprovalUsed, true, a, by("b", "carl", 1)) },
			want: said{
				States: map[string]string{"a/1": "Applied", "b/1": "Waiting"}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"},
				Approved: "Waiting", Applied: "Waiting",
			},
			again: time.Second,
		},
		"It was withdrawn, and made": {
			reason: "That is remembered of a ChangeApproval that is gone, too.", in: func() approval.Input { return carried(v1alpha1.ApprovalUsed, false) },
			want: said{States: map[string]string{}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"}, Approved: "Waiting", Applied: "TakenBack"},
		},
		"It was remembered before": {
			reason: "The manager was stopped before it took the allowance away.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalUsed, true, a)
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"It was withdrawn, made and remembered": {
			reason: "The manager was stopped before it took the allowance away, which another run uses.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalApplying, false)
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{}, Remove: []string{"a/1 from xr, used"}, Approved: "Waiting", Applied: "TakenBack"},
		},
		"Another of its name was used, and it is carried": {
			reason: "It was granted before that was known.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalApplying, false, a)
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "before", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It was taken away before": {
			reason: "The manager was stopped before it wrote the status.",
			in: func() approval.Input {
				in := with(input(1), a)
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "uid-a", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{"a/1": "Applied"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"What was applied is carried again": {
			reason: "However it came there, it goes, also while it is used.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalApplying, false, recorded(by("a", "berta", 1), v1alpha1.ApprovalStateApplied))
			},
			want: said{States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Approved: "Approved", Applied: "Applied"},
		},
		"Nothing asks for it any more": {
			reason: "It was taken back.", in: func() approval.Input { return carried(v1alpha1.ApprovalAbsent, false, a) },
			want:     said{States: map[string]string{"a/1": "Superseded"}, Remove: []string{"a/1 from xr"}, Approved: "Waiting", Applied: "TakenBack"},
			messages: map[string]string{"a/1": "needs a new ChangeApproval"},
		},
		"It was written down, and never given": {
			reason: "The manager was stopped in between; it is given now.", in: func() approval.Input { return with(input(1), a) },
			want: said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is carried, and not written down": {
			reason: "Whatever it was, it is what was granted.", in: func() approval.Input { return carried(v1alpha1.ApprovalApplying, false, by("a", "berta", 1)) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Half of it is carried": {
			reason: "It is given anew.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalWaiting, true, a)
				in.Status.Changes[0].Follows = []string{"Update"}

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, Remove: []string{"a/1 from xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Another has approved it since": {
			reason: "What is carried stays.", in: func() approval.Input { return carried("", true, a, later(by("b", "carl", 1), time.Minute)) },
			want: said{States: map[string]string{"a/1": "Granted", "b/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
	})
}

func TestWhatIsNotMadeYetIsTakenBack(t *testing.T) {
	a := recorded(by("a", "berta", 1), granted)
	old := recorded(later(by("a", "berta", 1), -24*time.Hour), granted)
	away := []string{"a/1 from xr"}
	shown := func(in approval.Input) approval.Input {
		cha := by("a", "berta", 1)
		seenBy(&in)[childRef(1)] = child(1, showing(&cha, 1))

		return in
	}
	unseen := func(in approval.Input, seen ...approval.Seen) approval.Input {
		delete(seenBy(&in), childRef(1))

		for _, s := range seen {
			seenBy(&in)[childRef(1)] = s
		}

		return in
	}

	check(t, map[string]planCase{
		"It has expired": {
			reason: "The function has said that it is held.", in: func() approval.Input { return carried(v1alpha1.ApprovalWaiting, true, old) },
			want: said{States: map[string]string{"a/1": "Expired"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"It has expired, and how far it is nobody has said": {
			reason: "The object may show it.", in: func() approval.Input { return unseen(carried("", true, old)) },
			want: said{States: map[string]string{"a/1": "Granted"}, Reads: []string{"child-1"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"And the object shows that it is made": {
			reason: "It is not taken back, for the function has not seen it.", in: func() approval.Input { return shown(carried("", true, old)) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"The function said that it is held, and was stopped before it said more": {
			reason: "The object shows it all the same.", in: func() approval.Input { return shown(carried(v1alpha1.ApprovalWaiting, true)) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"The object could not be read": {
			reason: "It is tried again.", in: func() approval.Input { return unseen(carried("", true, old), approval.Seen{Unknown: true}) },
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"The object may not be read": {
			reason: "That is no way to make an approval last.", in: func() approval.Input { return unseen(carried("", true, old), approval.Seen{Hidden: true}) },
			want: said{States: map[string]string{"a/1": "Expired"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"Or does not": {
			reason: "It is taken back.", in: func() approval.Input { return carried("", true, old) },
			want: said{States: map[string]string{"a/1": "Expired"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"It is being deleted": {
			reason: "That it is gone waits for a finalizer, and this does not.",
			in:     func() approval.Input { return carried(v1alpha1.ApprovalWaiting, true, deleted(a)) },
			want:   said{States: map[string]string{}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"And it is not held any more": {
			reason: "Nothing came of it.", in: func() approval.Input { return carried("", false, old) },
			want: said{States: map[string]string{"a/1": "Expired"}, Remove: away, Approved: "Waiting", Applied: "TakenBack"},
		},
		"The right was lost": {
			reason: "It is asked again until it is made.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalWaiting, true, recorded(by("a", "no-berta", 1), granted))
			},
			want: said{States: map[string]string{"a/1": "NotAllowed"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"Nobody can be asked about the right": {
			reason: "What is stays.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalWaiting, true, recorded(by("a", "unanswered-berta", 1), granted))
			},
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"But it expires": {
			reason: "Whoever may.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalWaiting, true, old, recorded(by("b", "unanswered-carl", 1), waiting))
			},
			want: said{States: map[string]string{"a/1": "Expired", "b/1": "Waiting"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"It is rejected": {
			reason: "By anybody who may.", in: func() approval.Input { return carried(v1alpha1.ApprovalWaiting, true, a, rejecting("dora", 1)) },
			want: said{States: map[string]string{"a/1": "Rejected", "r/1": "Rejected"}, Remove: away, Approved: "Rejected", Applied: "Waiting"},
		},
		"It was rejected, and is not held any more": {
			reason: "The manager was stopped before it took it away.",
			in: func() approval.Input {
				return carried("", false, recorded(by("a", "berta", 1), rejected), recorded(rejecting("dora", 1), rejected))
			},
			want: said{States: map[string]string{"a/1": "Rejected", "r/1": "Rejected"}, Reads: []string{"xr"}, Remove: away, Approved: "Waiting", Applied: "TakenBack"},
		},
		"It is withdrawn": {
			reason: "By deleting it.", in: func() approval.Input { return carried(v1alpha1.ApprovalWaiting, true) },
			want: said{States: map[string]string{}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"That is confirmed first": {
			reason: "The cache may not have a ChangeApproval yet that a manager before has used.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalWaiting, true)
				in.Confirmed = false

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Confirm: true, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"It is withdrawn, and another has approved it": {
			reason: "The other carries it from now on.", in: func() approval.Input {
				return carried(v1alpha1.ApprovalWaiting, true, recorded(by("b", "carl", 1), granted))
			},
			want: said{States: map[string]string{"b/1": "Granted"}, Add: []string{"b/1 to xr"}, Remove: away, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"One of two is withdrawn": {
			reason: "That is not enough any more.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalWaiting, true, a)
				in.Status.Required = 2

				return in
			},
			want: said{States: map[string]string{"a/1": "Waiting"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"Its user asks for changes since": {
			reason: "Nobody approves their own.",
			in: func() approval.Input {
				in := carried(v1alpha1.ApprovalWaiting, true, a)
				in.Status.Requesters = []string{"berta"}

				return in
			},
			want: said{States: map[string]string{"a/1": "NotAllowed"}, Remove: away, Approved: "Waiting", Applied: "Waiting"},
		},
		"Another ChangeApproval took its name": {
			reason: "It has another UID.",
			in: func() approval.Input {
				b := by("a", "berta", 1)
				b.UID = "another"

				return carried(v1alpha1.ApprovalWaiting, true, b)
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, Remove: away, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is carried by another parent": {
			reason: "Only the parent of what is held carries it.",
			in: func() approval.Input {
				in := with(input(1), a)
				in.Parents[0].Allowances = carrying(by("a", "berta", 1), 1)
				seenBy(&in)[childRef(1)] = child(1, nil)

				return in
			},
			want: said{
				States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, Remove: []string{"a/1 from claim"},
				UnderWay: true, Approved: "Approved", Applied: "Waiting",
			},
		},
		"The parent is gone": {
			reason: "Nothing is held below it.",
			in: func() approval.Input {
				in := with(input(), a)
				in.Parents[1] = approval.Parent{Ref: xrRef(), Gone: true}
				seenBy(&in)[xrRef()] = approval.Seen{}

				return in
			},
			want: said{States: map[string]string{"a/1": "Superseded"}, Approved: "Waiting", Applied: "TakenBack"},
		},
		"The allowance is there, and not in the cache": {
			reason: "It may be used by now: that is waited for.",
			in: func() approval.Input {
				in := with(input(), a)
				seen := seenXR(`{}`)
				b := by("a", "berta", 1)
				seen.Object.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: format(carrying(b, 1))})
				seenBy(&in)[xrRef()] = seen

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 10 * time.Second,
		},
	})
}

// deletion makes change 1 a deletion.
func deletion(in approval.Input) approval.Input {
	for i := range in.Status.Changes {
		in.Status.Changes[i].Field, in.Status.Changes[i].Destroys = v1alpha1.MutationDelete, true
	}

	for i := range in.Approvals {
		for j := range in.Approvals[i].Status.Changes {
			in.Approvals[i].Status.Changes[j].Field = v1alpha1.MutationDelete
		}
	}

	list := xr(&in).Allowances
	for i := range list {
		if list[i].Digest != "" {
			list[i].Mutation = v1alpha1.MutationDelete
		}
	}

	return in
}

func TestADeletionIsOverOnceTheObjectIsGone(t *testing.T) {
	absent := func(seen *approval.Seen) func() approval.Input {
		return func() approval.Input {
			in := deletion(carried(v1alpha1.ApprovalAbsent, false, recorded(by("a", "berta", 1), granted)))
			delete(seenBy(&in), childRef(1))

			if seen != nil {
				seenBy(&in)[childRef(1)] = *seen
			}

			return in
		}
	}
	there, going := child(1, nil), child(1, deleting)

	check(t, map[string]planCase{
		"Nobody has looked": {
			reason: "The API server is asked.", in: absent(nil),
			want: said{States: map[string]string{"a/1": "Granted"}, Reads: []string{"child-1"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It is gone": {
			reason: "So the deletion was made.", in: absent(&approval.Seen{}),
			want: said{
				States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"},
				Approved: "Approved", Applied: "Applied",
			},
		},
		"It is going": {
			reason: "Its finalizers take their time: the allowance serves until then.", in: absent(&going),
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"It stays": {
			reason: "The deletion was taken back.", in: absent(&there),
			want: said{States: map[string]string{"a/1": "Superseded"}, Remove: []string{"a/1 from xr"}, Approved: "Waiting", Applied: "TakenBack"},
		},
		"It could not be read": {
			reason: "It is tried again.", in: absent(&approval.Seen{Unknown: true}),
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"It may not be read": {
			reason: "Whichever it was, nothing is granted any more.", in: absent(&approval.Seen{Hidden: true}),
			want: said{States: map[string]string{"a/1": "Superseded"}, Remove: []string{"a/1 from xr"}, Approved: "Waiting", Applied: "TakenBack"},
		},
		"Its parent reports nothing, and it is gone": {
			reason: "It was made.",
			in: func() approval.Input {
				in := absent(&approval.Seen{})()
				xr(&in).Reports, xr(&in).List = false, nil

				return in
			},
			want: said{
				States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"},
				Approved: "Approved", Applied: "Applied",
			},
		},
	})
}

func TestOfAParentThatReportsNothingTheObjectShowsTheUse(t *testing.T) {
	a := recorded(by("a", "berta", 1), granted)
	quiet := func(held bool, edit func(*unstructured.Unstructured)) func() approval.Input {
		return func() approval.Input {
			in := carried("", held, a)
			xr(&in).Reports, xr(&in).List = false, nil
			seenBy(&in)[childRef(1)] = child(1, edit)

			return in
		}
	}
	other := by("a", "berta", 2)

	check(t, map[string]planCase{
		"It shows the use": {
			reason: "It was made.", in: quiet(false, showing(&a, 1)),
			want: said{
				States: map[string]string{"a/1": "Applied"}, Remove: []string{"a/1 from xr, used"}, Remember: []string{"a/1"},
				Approved: "Approved", Applied: "Applied",
			},
		},
		"It shows the use of another change of the same approval": {
			reason: "One hop gives all of them.", in: quiet(true, showing(&other, 2)),
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It holds the change": {
			reason: "The cache is behind.", in: quiet(false, holding(1)),
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It shows nothing": {
			reason: "It was taken back.", in: quiet(false, nil),
			want: said{States: map[string]string{"a/1": "Superseded"}, Remove: []string{"a/1 from xr"}, Approved: "Waiting", Applied: "TakenBack"},
		},
	})
}

func TestAChangeApprovalStaysFor30Days(t *testing.T) {
	month := -v1alpha1.MaxApprovalAge
	old := func(cha v1alpha1.ChangeApproval) v1alpha1.ChangeApproval { return later(cha, month) }

	check(t, map[string]planCase{
		"What is done goes": {
			reason: "It is the history of a month.", in: func() approval.Input {
				return with(input(), old(recorded(by("a", "berta", 1), v1alpha1.ApprovalStateApplied)))
			},
			want: said{States: map[string]string{"a/1": "Applied"}, Delete: []string{"a"}, Approved: "Approved", Applied: "Applied"},
		},
		"What is younger stays": {
			reason: "It is looked at again.",
			in: func() approval.Input {
				return with(input(), recorded(by("a", "berta", 1), v1alpha1.ApprovalStateSuperseded))
			},
			want: said{States: map[string]string{"a/1": "Superseded"}, Approved: "Waiting", Applied: "TakenBack"}, again: 24 * time.Hour,
		},
		"What is being made stays": {
			reason: "However long that takes.",
			in: func() approval.Input {
				return carried(v1alpha1.ApprovalApplying, false, old(recorded(by("a", "berta", 1), granted)))
			},
			want: said{States: map[string]string{"a/1": "Granted"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"A rejection of what is held stays": {
			reason: "Approvals would count without it.", in: func() approval.Input { return with(input(1), old(recorded(rejecting("dora", 1), rejected))) },
			want: said{States: map[string]string{"r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
		},
		"A rejection of what is not goes": {
			reason: "Nothing comes of it.", in: func() approval.Input { return with(input(2), old(recorded(rejecting("dora", 1), rejected))) },
			want: said{States: map[string]string{"r/1": "Rejected"}, Delete: []string{"r"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"What names nothing goes": {
			reason: "Nothing ever comes of it.", in: func() approval.Input { return with(input(), old(by("a", "berta"))) },
			want: said{States: map[string]string{}, Delete: []string{"a"}, Approved: "Waiting", Applied: "TakenBack"},
		},
	})
}

func TestTheRootRemembersTheNewest(t *testing.T) {
	in := carried(v1alpha1.ApprovalUsed, false, recorded(by("a", "berta", 1), granted))
	for i := range v1alpha1.MaxApproved {
		in.Approved = append(in.Approved, v1alpha1.ApprovedChange{Approval: "before", UID: types.UID(rune('A' + i)), Digest: sum(100 + i)})
	}

	got := compute(t, in).Remember
	if len(got) != v1alpha1.MaxApproved || got[0] != in.Approved[1] || got[len(got)-1] != (v1alpha1.ApprovedChange{Approval: "a", UID: "uid-a", Digest: sum(1)}) {
		t.Errorf("remembered are %d, from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
}

func TestAPendingChangeIsNotOverWhileSomethingIsUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		in   approval.Input
		over bool
	}{
		"it is being made":  {in: carried(v1alpha1.ApprovalApplying, false, recorded(by("a", "berta", 1), granted))},
		"it was made":       {in: carried(v1alpha1.ApprovalUsed, false, recorded(by("a", "berta", 1), granted)), over: true},
		"nothing was asked": {in: input(), over: true},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewTime(start)
			status := tc.in.Status.DeepCopy()
			status.FinishedAt = &at

			compute(t, tc.in).Complete(status)

			if (status.FinishedAt != nil) != tc.over {
				t.Errorf("finished at %v", status.FinishedAt)
			}

			if len(status.Conditions) != 2 || status.Conditions[0].Type != v1alpha1.ConditionApplied {
				t.Errorf("conditions %+v", status.Conditions)
			}
		})
	}
}

// faulty is a cluster of which no object can be read.
type faulty struct {
	*cluster

	err error
}

func (f *faulty) Object(_ context.Context, ref v1alpha1.ObjectReference) (approval.Seen, error) {
	f.asked = append(f.asked, string(ref.UID))

	return approval.Seen{}, f.err
}

func TestEachObjectIsReadOnceAndAnErrorEndsTheAttempt(t *testing.T) {
	in := carried("", true, recorded(later(by("a", "berta", 1), -24*time.Hour), granted), by("b", "carl", 7), by("c", "dora", 7), by("d", "dora", 8))
	in.Listed = []v1alpha1.HeldChange{entry(7), entry(8)}
	in.Cluster = &cluster{}
	compute(t, in)

	if got := say(in, approval.Plan{}).Reads; !slices.Equal(got, []string{"child-1", "xr"}) {
		t.Errorf("read are %q", got)
	}

	f := &faulty{cluster: &cluster{}, err: errNo}
	in.Cluster = f

	if plan, err := approval.Compute(t.Context(), in); !errors.Is(err, errNo) || len(plan.First)+len(plan.Last)+len(plan.Parents) > 0 || len(f.asked) != 1 {
		t.Errorf("%v after reads of %q: %+v", err, f.asked, plan)
	}
}

func TestAChangeApprovalIsFinalOnceAllItsChangesAre(t *testing.T) {
	done := recorded(by("a", "berta", 1), v1alpha1.ApprovalStateApplied)
	named := func(cha v1alpha1.ChangeApproval, digests ...string) v1alpha1.ChangeApproval {
		cha.Spec.Changes = digests

		return cha
	}

	for name, tc := range map[string]struct {
		cha  v1alpha1.ChangeApproval
		want bool
	}{
		"it is not looked at yet":    {cha: by("a", "berta", 1)},
		"it waits":                   {cha: recorded(by("a", "berta", 1), waiting)},
		"it is not looked at wholly": {cha: named(done, sum(1), sum(2))},
		"another change is recorded": {cha: named(done, sum(2))},
		"it is done":                 {cha: done, want: true},
		"it names a change twice":    {cha: named(done, sum(1), sum(1)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := approval.Final(&tc.cha); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestAHeldChangeWithoutAParentIsNoPanic has a change whose entry names no parent, and that one carries an approval of.
func TestAHeldChangeWithoutAParentIsNoPanic(t *testing.T) {
	cha := by("a", "berta", 1)
	in := with(input(1), cha)
	xr(&in).Allowances, xr(&in).Reports = carrying(cha, 1), true
	xr(&in).List = &v1alpha1.State{Approvals: []v1alpha1.ApprovalUse{reports(cha, 1, v1alpha1.ApprovalWaiting)}}
	in.Status.Changes[0].Parent = nil

	if got := say(in, compute(t, in)).States["a/1"]; got != string(waiting) {
		t.Errorf("state %q: its parent could not be read", got)
	}
}
