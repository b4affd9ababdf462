// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var (
	start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	errNo = errors.New("no answer")
)

func sum(n int) string { return fmt.Sprintf("sha256:%064d", n) }

func xrRef() v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x", UID: "xr"}
}

func childRef(n int) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{
		APIVersion: "rds.example.org/v1", Kind: "Instance", Name: fmt.Sprintf("db-%d", n), UID: types.UID(fmt.Sprintf("child-%d", n)),
	}
}

// entry is a change of a child of the XR.
func entry(n int) v1alpha1.HeldChange {
	parent := xrRef()

	return v1alpha1.HeldChange{
		Ref: childRef(n), Parent: &parent, Field: "spec.forProvider.size", Digest: sum(n),
		Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: "anna"},
	}
}

// child is an object as the API server has it.
func child(n int, edit func(*unstructured.Unstructured)) approval.Seen {
	ref := childRef(n)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind}}
	u.SetName(ref.Name)
	u.SetUID(ref.UID)

	if edit != nil {
		edit(u)
	}

	return approval.Seen{Object: u}
}

func deleting(u *unstructured.Unstructured) {
	at := metav1.NewTime(start)
	u.SetDeletionTimestamp(&at)
}

// showing gives a child a record that shows the use of an approval of a change.
func showing(cha *v1alpha1.ChangeApproval, n int) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		a := approval.Allowances(entry(n), cha, 1, nil)[0]
		u.SetAnnotations(map[string]string{
			v1alpha1.AnnotationRecord: allowance.FormatRecord(v1alpha1.ObjectRecord{Used: []v1alpha1.Use{allowance.UseOf(a)}}),
		})
	}
}

func holding(n int) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationHeld: allowance.FormatList([]v1alpha1.HeldChange{{Field: "spec.a", Missing: "x", Digest: sum(n)}})})
	}
}

// by is a ChangeApproval of a user, made an hour ago and a minute later than the one before.
func by(name, user string, digests ...int) v1alpha1.ChangeApproval {
	cha := v1alpha1.ChangeApproval{Spec: v1alpha1.ChangeApprovalSpec{
		PendingChange: "pch", Approver: &v1alpha1.Approver{Username: user}, Decision: v1alpha1.DecisionApprove,
	}}
	cha.Namespace, cha.Name, cha.UID, cha.Generation = "team-a", name, types.UID("uid-"+name), 1
	cha.CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))

	for _, n := range digests {
		cha.Spec.Changes = append(cha.Spec.Changes, sum(n))
	}

	return cha
}

func rejecting(user string, digests ...int) v1alpha1.ChangeApproval {
	cha := by("r", user, digests...)
	cha.Spec.Decision, cha.Spec.Reason = v1alpha1.DecisionReject, "not today"

	return cha
}

func breaking(user string, digests ...int) v1alpha1.ChangeApproval {
	cha := by("g", user, digests...)
	cha.Spec.Decision, cha.Spec.Reason = v1alpha1.DecisionBreakGlass, "outage"

	return cha
}

// recorded gives a ChangeApproval a state that was recorded.
func recorded(cha v1alpha1.ChangeApproval, state v1alpha1.ApprovalState) v1alpha1.ChangeApproval {
	parent, since := xrRef(), metav1.NewTime(start.Add(-30*time.Minute))

	for _, d := range cha.Spec.Changes {
		n := 0
		if _, err := fmt.Sscanf(strings.TrimPrefix(d, "sha256:"), "%d", &n); err != nil {
			panic(err)
		}

		cha.Status.Changes = append(cha.Status.Changes, v1alpha1.ChangeDecision{
			Digest: d, Ref: childRef(n), Parent: &parent, Field: entry(n).Field, State: state, Since: &since,
		})
	}

	return cha
}

func later(cha v1alpha1.ChangeApproval, by time.Duration) v1alpha1.ChangeApproval {
	cha.CreationTimestamp = metav1.NewTime(cha.CreationTimestamp.Add(by))

	return cha
}

// deleted is one that is being deleted.
func deleted(cha v1alpha1.ChangeApproval) v1alpha1.ChangeApproval {
	at := metav1.NewTime(start)
	cha.DeletionTimestamp, cha.Finalizers = &at, []string{metav1.FinalizerDeleteDependents}

	return cha
}

// carrying is the XR with the allowances of an approval of changes.
func carrying(cha v1alpha1.ChangeApproval, digests ...int) []v1alpha1.Allowance {
	out := make([]v1alpha1.Allowance, 0, len(digests))

	for _, n := range digests {
		out = append(out, approval.Allowances(entry(n), &cha, 3, nil)...)
	}

	return out
}

func reports(cha v1alpha1.ChangeApproval, n int, state v1alpha1.ApprovalUseState) v1alpha1.ApprovalUse {
	return v1alpha1.ApprovalUse{Approval: string(cha.UID), Digest: sum(n), State: state}
}

// cluster has objects, and notes which it was asked for and does not have: that is not known then.
type cluster struct {
	seen  map[v1alpha1.ObjectReference]approval.Seen
	asked []string
}

// MayDecide implements approval.Cluster by the name of the user.
func (*cluster) MayDecide(
	_ context.Context, a v1alpha1.Approver, _ v1alpha1.ApprovalDecision, _ v1alpha1.HeldChange,
) (bool, string, error) {
	switch {
	case strings.HasPrefix(a.Username, "no-"):
		return false, "user may not approve: bind the role", nil
	case strings.HasPrefix(a.Username, "unanswered-"):
		return false, "", errNo
	default:
		return true, "", nil
	}
}

// Object implements approval.Cluster.
func (c *cluster) Object(_ context.Context, ref v1alpha1.ObjectReference) (approval.Seen, error) {
	seen, ok := c.seen[ref]
	if !ok {
		c.asked = append(c.asked, string(ref.UID))

		return approval.Seen{Unknown: true}, nil
	}

	return seen, nil
}

// seenBy are the objects of the cluster of an input.
func seenBy(in *approval.Input) map[v1alpha1.ObjectReference]approval.Seen {
	c, _ := in.Cluster.(*cluster)

	return c.seen
}

// compute plans by an input without faults.
func compute(t *testing.T, in approval.Input) approval.Plan {
	t.Helper()

	plan, err := approval.Compute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

// input is of a Claim below which an XR holds changes.
func input(held ...int) approval.Input {
	in := approval.Input{
		Status: &v1alpha1.PendingChangeStatus{Total: int32(len(held)), Requesters: []string{"anna"}, Required: 1},
		Made:   start.Add(-2 * time.Hour), Confirmed: true, Cluster: &cluster{seen: map[v1alpha1.ObjectReference]approval.Seen{}}, Now: start,
		Parents: []approval.Parent{
			{Ref: v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "Database", Namespace: "team-a", Name: "db", UID: "claim"}},
			{Ref: xrRef(), Generation: 3, Reports: true, List: &v1alpha1.State{}},
		},
	}

	for _, n := range held {
		in.Status.Changes = append(in.Status.Changes, entry(n))
	}

	return in
}

// xr is the parent of what is held.
func xr(in *approval.Input) *approval.Parent { return &in.Parents[1] }

// said is a plan as text.
type said struct {
	States   map[string]string
	Add      []string
	Remove   []string
	Remember []string
	Delete   []string
	Reads    []string
	Confirm  bool
	UnderWay bool
	Approved string
	Applied  string
}

func say(in approval.Input, p approval.Plan) said {
	number := func(digest string) string { return strings.TrimLeft(strings.TrimPrefix(digest, "sha256:"), "0") }
	out := said{States: map[string]string{}, Confirm: p.Unconfirmed, UnderWay: p.UnderWay, Approved: p.Approved.Reason, Applied: p.Applied.Reason}

	for _, a := range p.Approvals {
		out.States[a.Name+"/"+number(a.Digest)] = string(a.State)
	}

	for _, w := range p.Parents {
		for _, g := range w.Add {
			out.Add = append(out.Add, fmt.Sprintf("%s/%s to %s", g.Approval, number(g.Digest), w.Ref.UID))
		}

		for _, g := range w.Remove {
			text := fmt.Sprintf("%s/%s from %s", g.Approval, number(g.Digest), w.Ref.UID)
			if g.Used {
				text += ", used"
			}

			out.Remove = append(out.Remove, text)
		}
	}

	for _, a := range p.Remember {
		if !slices.Contains(in.Approved, a) {
			out.Remember = append(out.Remember, a.Approval+"/"+number(a.Digest))
		}
	}

	for _, cha := range p.Delete {
		out.Delete = append(out.Delete, cha.Name)
	}

	if c, ok := in.Cluster.(*cluster); ok {
		out.Reads = c.asked
	}

	return out
}

type planCase struct {
	reason string
	in     func() approval.Input
	want   said
	// messages of approvals, by name and number, have these words.
	messages map[string]string
	// again is at most when it is looked at again; zero for any.
	again time.Duration
}

// with completes an input.
func with(in approval.Input, list ...v1alpha1.ChangeApproval) approval.Input {
	in.Approvals = list

	return in
}

func TestWhatIsHeldIsGrantedOnceEnoughPeopleApproveIt(t *testing.T) {
	check(t, map[string]planCase{
		"One approval is enough where one is required": {
			reason: "The parent gets the allowance.",
			in:     func() approval.Input { return with(input(1), by("a", "berta", 1)) },
			want:   said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			again:  15 * time.Second,
		},
		"Nothing is granted before it is confirmed": {
			reason: "Of a cache that is behind an approval may be one that was used.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1))
				in.Confirmed = false

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Confirm: true, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Of two changes one is approved": {
			reason: "The other stays held.",
			in:     func() approval.Input { return with(input(1, 2), by("a", "berta", 1)) },
			want:   said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"One of two people is not enough": {
			reason: "Required counts different people.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1), later(by("b", "berta", 1), time.Minute))
				in.Status.Required = 2

				return in
			},
			want:     said{States: map[string]string{"a/1": "Waiting", "b/1": "Waiting"}, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/1": "1 of 2 approvals: one more person must approve it, other than the requesters: anna"},
		},
		"Two people are, and the newest carries it": {
			reason: "The others are named.",
			in: func() approval.Input {
				in := with(input(1), later(by("b", "carl", 1), time.Minute), by("a", "berta", 1))
				in.Status.Required = 2

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted", "b/1": "Granted"}, Add: []string{"b/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Who asked for it does not count": {
			reason: "Four eyes, also where it was admitted before they asked.",
			in: func() approval.Input {
				in := with(input(1), by("a", "anna", 1), by("b", "berta", 1))
				in.Status.Required = 2

				return in
			},
			want:     said{States: map[string]string{"a/1": "NotAllowed", "b/1": "Waiting"}, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/1": "Ask someone else; with GitOps"},
		},
		"Who may not does not count": {
			reason: "It says what is missing, and is asked again.",
			in:     func() approval.Input { return with(input(1), by("a", "no-berta", 1)) },
			want:   said{States: map[string]string{"a/1": "NotAllowed"}, Approved: "Waiting", Applied: "Waiting"}, messages: map[string]string{"a/1": "bind the role"},
			again: 5 * time.Minute,
		},
		"Nobody knows who may": {
			reason: "Nothing is granted, and it is asked again soon.",
			in:     func() approval.Input { return with(input(1), by("a", "unanswered-berta", 1), by("b", "carl", 1)) },
			want:   said{States: map[string]string{"a/1": "Waiting", "b/1": "Waiting"}, Approved: "Waiting", Applied: "Waiting"}, messages: map[string]string{"b/1": "no answer"},
			again: 10 * time.Second,
		},
		"It does not say who made it": {
			reason: "Nobody has made it then.",
			in: func() approval.Input {
				a := by("a", "berta", 1)
				a.Spec.Approver = nil

				return with(input(1), a)
			},
			want: said{States: map[string]string{"a/1": "NotAllowed"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"One rejection is enough against all approvals": {
			reason: "Whoever approves.",
			in: func() approval.Input {
				return with(input(1), by("a", "berta", 1), by("b", "carl", 1), later(rejecting("dora", 1), -time.Minute))
			},
			want:     said{States: map[string]string{"a/1": "Rejected", "b/1": "Rejected", "r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
			messages: map[string]string{"a/1": `user "dora" rejected the change by ChangeApproval "r" (not today)`},
		},
		"Who has asked for it may reject it": {
			reason: "It takes the right alone.",
			in:     func() approval.Input { return with(input(1), rejecting("anna", 1)) },
			want:   said{States: map[string]string{"r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
		},
		"A rejection of somebody who may not holds nothing": {
			reason: "It takes the same right.",
			in:     func() approval.Input { return with(input(1), by("a", "berta", 1), rejecting("no-dora", 1)) },
			want:   said{States: map[string]string{"a/1": "Granted", "r/1": "NotAllowed"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Who has approved rejects": {
			reason: "Of one person the newest decision counts.",
			in: func() approval.Input {
				return with(input(1), by("a", "berta", 1), later(rejecting("berta", 1), time.Minute))
			},
			want: said{States: map[string]string{"a/1": "Rejected", "r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
		},
		"Who has rejected approves": {
			reason: "That is how a rejection ends.",
			in: func() approval.Input {
				return with(input(1), rejecting("berta", 1), later(by("a", "berta", 1), time.Minute))
			},
			want:     said{States: map[string]string{"a/1": "Granted", "r/1": "Superseded"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"r/1": `approved the change since, by ChangeApproval "a"`},
		},
		"A rejection of the same second is the newer": {
			reason: "What is held can still be approved.",
			in:     func() approval.Input { return with(input(1), by("a", "berta", 1), rejecting("berta", 1)) },
			want:   said{States: map[string]string{"a/1": "Rejected", "r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
		},
		"Who breaks the glass needs nobody else": {
			reason: "Also where it takes two.",
			in: func() approval.Input {
				in := with(input(1), breaking("berta", 1), later(by("a", "carl", 1), time.Minute))
				in.Status.Required = 3

				return in
			},
			want:     said{States: map[string]string{"a/1": "Waiting", "g/1": "Granted"}, Add: []string{"g/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"a/1": "2 of 3 approvals"},
		},
		"Who breaks the glass may have asked for it": {
			reason: "It counts for nobody else, as their own approval.",
			in: func() approval.Input {
				in := with(input(1), breaking("anna", 1), later(by("a", "carl", 1), time.Minute))
				in.Status.Required = 2

				return in
			},
			want:     said{States: map[string]string{"a/1": "Waiting", "g/1": "Granted"}, Add: []string{"g/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
			messages: map[string]string{"a/1": "1 of 2 approvals"},
		},
		"Who breaks the glass is held by no rejection of others": {
			reason: "Which stays.",
			in: func() approval.Input {
				return with(input(1), breaking("berta", 1), later(rejecting("dora", 1), time.Minute), by("a", "carl", 1))
			},
			want: said{
				States: map[string]string{"a/1": "Rejected", "g/1": "Granted", "r/1": "Rejected"}, Add: []string{"g/1 to xr"}, UnderWay: true,
				Approved: "Approved", Applied: "Waiting",
			},
		},
		"Who breaks the glass is held by a later rejection of theirs": {
			reason: "Of one person the newest decision counts.",
			in: func() approval.Input {
				return with(input(1), breaking("berta", 1), later(rejecting("berta", 1), time.Minute))
			},
			want: said{States: map[string]string{"g/1": "Rejected", "r/1": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
		},
		"Who may not break the glass does not": {
			reason: "It is asked again at the use.",
			in:     func() approval.Input { return with(input(1), breaking("no-berta", 1)) },
			want:   said{States: map[string]string{"g/1": "NotAllowed"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"A glass that is broken is for a day": {
			reason: "As an approval is.",
			in:     func() approval.Input { return with(input(1), later(breaking("berta", 1), -24*time.Hour)) },
			want:   said{States: map[string]string{"g/1": "Expired"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"What is let through alone is carried though others reject it": {
			reason: "While nothing holds it, as it is being made.",
			in: func() approval.Input {
				g := recorded(breaking("berta", 1), v1alpha1.ApprovalStateGranted)
				in := with(input(), g, recorded(later(rejecting("dora", 1), time.Minute), v1alpha1.ApprovalStateRejected))
				xr(&in).Allowances = carrying(g, 1)

				return in
			},
			want: said{States: map[string]string{"g/1": "Granted", "r/1": "Rejected"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"It has expired": {
			reason: "A day is what it is good for by default; a rejection lasts.",
			in: func() approval.Input {
				return with(input(1, 2), later(by("a", "berta", 1), -24*time.Hour), later(rejecting("berta", 2), -240*time.Hour))
			},
			want:     said{States: map[string]string{"a/1": "Expired", "r/2": "Rejected"}, Approved: "Rejected", Applied: "Waiting"},
			messages: map[string]string{"a/1": "not used by 2026-05-01T11:00:00Z. To approve the change now, create a new ChangeApproval"},
		},
		"It expires soon": {
			reason: "It is looked at then.",
			in: func() approval.Input {
				a := by("a", "berta", 1)
				a.Spec.ValidFor = &metav1.Duration{Duration: time.Hour + 20*time.Second}

				return with(input(1), a)
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"}, again: 21 * time.Second,
		},
		"It is another value each time": {
			reason: "Nobody can approve that.",
			in: func() approval.Input {
				in := input(1)
				in.Status.Changes[0].Digest, in.Status.Changes[0].Unstable = "", true

				return in
			},
			want: said{States: map[string]string{}, Approved: "Unstable", Applied: "Waiting"},
		},
		"The parent carries too much": {
			reason: "It is given once there is room.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1))
				xr(&in).Allowances = fixture.AllSourced([]v1alpha1.Allowance{{Kind: "X", Initiator: strings.Repeat("x", v1alpha1.MaxAllowancesBytes-200)}})

				return in
			},
			want: said{States: map[string]string{"a/1": "Waiting"}, Approved: "Waiting", Applied: "Waiting"}, messages: map[string]string{"a/1": "once other approvals"},
		},
		"The parent could not be read": {
			reason: "It is tried again.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1))
				in.Parents = in.Parents[:1]

				return in
			},
			want: said{States: map[string]string{"a/1": "Waiting"}, Approved: "Waiting", Applied: "Waiting"}, again: 10 * time.Second,
		},
	})
}

func TestAnApprovalIsOfWhatIsHeldWhenItIsLookedAtFirst(t *testing.T) {
	fromGit := by("a", "berta", 7)

	notNow := func(edit func(*approval.Input)) func() approval.Input {
		return func() approval.Input {
			in := with(input(1), fromGit)
			edit(&in)

			return in
		}
	}
	listed := func(in *approval.Input) {
		in.Listed = []v1alpha1.HeldChange{entry(7)}
	}

	check(t, map[string]planCase{
		"Nothing has its digest": {
			reason: "As of one that is applied again from Git: it grants nothing, for good.", in: notNow(func(*approval.Input) {}),
			want:     said{States: map[string]string{"a/7": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/7": "create a new ChangeApproval: kubectl describe pendingchange pch -n team-a"},
		},
		"That is confirmed first": {
			reason: "The cache may be behind.", in: notNow(func(in *approval.Input) { in.Confirmed = false }),
			want: said{States: map[string]string{"a/7": "Waiting"}, Confirm: true, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"The pipeline fails": {
			reason: "What it would hold is not known.",
			in: notNow(func(in *approval.Input) {
				in.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCurrent, Status: metav1.ConditionFalse}}
			}),
			want:     said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/7": "it is not known whether the change is held now"},
		},
		"The list is cut": {
			reason: "It may be one of those that are counted.", in: notNow(func(in *approval.Input) { in.Status.Total = 120 }),
			want:     said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/7": "more changes are held than are listed"},
		},
		"The PendingChange lists it on the API server": {
			reason: "Its parent is asked.", in: notNow(listed),
			want: said{States: map[string]string{"a/7": "Waiting"}, Reads: []string{"xr"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"And its parent holds it there": {
			reason: "The cache of a manager that has just begun to lead is behind.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()] = seenXR(`{"changes":[{"digest":"` + sum(7) + `"}]}`)
			}),
			want: said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"Or does not": {
			reason: "Then the object itself is asked.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()] = seenXR(`{}`)
			}),
			want: said{States: map[string]string{"a/7": "Waiting"}, Reads: []string{"child-7"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"And the object has it held by hand": {
			reason: "The webhook holds what a person changes.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()], seenBy(in)[childRef(7)] = seenXR(`{}`), child(7, holding(7))
			}),
			want: said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"Or not": {
			reason: "It was taken back in between.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()], seenBy(in)[childRef(7)] = seenXR(`{}`), child(7, nil)
			}),
			want: said{States: map[string]string{"a/7": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"The parent's list is cut there": {
			reason: "It may be one of those that did not fit.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()] = seenXR(`{"more":3}`)
			}),
			want: said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"},
		},
		"The parent could not be read there": {
			reason: "It is tried again.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()] = approval.Seen{Unknown: true}
			}),
			want: said{States: map[string]string{"a/7": "Waiting"}, UnderWay: true, Approved: "Waiting", Applied: "Waiting"}, again: 10 * time.Second,
		},
		"The parent is gone": {
			reason: "So is what it held.",
			in: notNow(func(in *approval.Input) {
				listed(in)
				seenBy(in)[xrRef()] = approval.Seen{}
			}),
			want: said{States: map[string]string{"a/7": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"It was used under that name": {
			reason: "A name grants a change once.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1))
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "before", Digest: sum(1)}}

				return in
			},
			want:     said{States: map[string]string{"a/1": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
			messages: map[string]string{"a/1": "Create a new ChangeApproval with another name"},
		},
		"It was used under that name after it was looked at first": {
			reason: "The one before was withdrawn while it was being used.",
			in: func() approval.Input {
				in := with(input(1), recorded(by("a", "berta", 1), v1alpha1.ApprovalStateWaiting))
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "before", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{"a/1": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"It was used under another name": {
			reason: "Somebody has approved it anew.",
			in: func() approval.Input {
				in := with(input(1), by("b", "berta", 1))
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "before", Digest: sum(1)}}

				return in
			},
			want: said{States: map[string]string{"b/1": "Granted"}, Add: []string{"b/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"Another value was used under that name": {
			reason: "The name alone says nothing.",
			in: func() approval.Input {
				in := with(input(1), by("a", "berta", 1))
				in.Approved = []v1alpha1.ApprovedChange{{Approval: "a", UID: "before", Digest: sum(2)}}

				return in
			},
			want: said{States: map[string]string{"a/1": "Granted"}, Add: []string{"a/1 to xr"}, UnderWay: true, Approved: "Approved", Applied: "Waiting"},
		},
		"A rejection of what is not held": {
			reason: "There is nothing to reject.",
			in:     func() approval.Input { return with(input(1), rejecting("berta", 7)) },
			want:   said{States: map[string]string{"r/7": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
		},
		"Superseded once is so for good": {
			reason: "Also where the change is held later.",
			in: func() approval.Input {
				return with(input(1), recorded(by("a", "berta", 1), v1alpha1.ApprovalStateSuperseded))
			},
			want: said{States: map[string]string{"a/1": "Superseded"}, Approved: "Waiting", Applied: "Waiting"},
		},
	})
}

// seenXR is the XR as the API server has it, with a list.
func seenXR(list string) approval.Seen {
	list = strings.Replace(strings.Replace(list, "{", `{"v":1,`, 1), ",}", "}", 1)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "XDatabase", "metadata": map[string]any{"name": "db-x", "uid": "xr"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": v1alpha1.ConditionState, "status": "False", "message": list}}},
	}}

	return approval.Seen{Object: u}
}

func check(t *testing.T, cases map[string]planCase) {
	t.Helper()

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := tc.in()
			before := fmt.Sprintf("%+v", in)
			plan := compute(t, in)

			if diff := cmp.Diff(tc.want, say(in, plan)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			for key, words := range tc.messages {
				name, number, _ := strings.Cut(key, "/")

				if !slices.ContainsFunc(plan.Approvals, func(a v1alpha1.PendingApproval) bool {
					return a.Name == name && strings.HasSuffix(a.Digest, "0"+number) && strings.Contains(a.Message, words)
				}) {
					t.Errorf("%s\nno %q of %s in %+v", tc.reason, words, key, plan.Approvals)
				}
			}

			if tc.again > 0 && (plan.Again == 0 || plan.Again > tc.again) {
				t.Errorf("%s\nlooked at again in %s, want %s at most", tc.reason, plan.Again, tc.again)
			}

			if after := fmt.Sprintf("%+v", in); after != before {
				t.Errorf("%s\nthe input is modified", tc.reason)
			}
		})
	}
}
