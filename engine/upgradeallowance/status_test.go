// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// moment is one at which a window is read.
type moment struct {
	after time.Duration
	state upgradeallowance.State
	// until is a new end of the window.
	until time.Duration
	// events are the reasons of the events, in order.
	events []v1alpha1.EventReason
}

func TestEachTurnOfAWindowIsReportedOnce(t *testing.T) {
	active := upgradeallowance.State{Active: true, Reason: v1alpha1.ReasonActive, Message: "m"}
	early := upgradeallowance.State{Reason: v1alpha1.ReasonNotStarted}
	over := upgradeallowance.State{Reason: v1alpha1.ReasonEnded}
	none := upgradeallowance.State{Reason: v1alpha1.ReasonNoPods}
	other := upgradeallowance.State{Reason: v1alpha1.ReasonPodRunsAnotherImage, Message: "pod a"}
	another := upgradeallowance.State{Reason: v1alpha1.ReasonPodRunsAnotherImage, Message: "pod b"}

	cases := map[string]struct {
		reason  string
		moments []moment
	}{
		"Plain": {
			reason: "It starts, and ends.",
			moments: []moment{
				{state: early},
				{state: early},
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowStarted}},
				{state: active},
				{state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}},
				{state: over},
			},
		},
		"Waiting": {
			reason: "That it waits is no news, but that it has to wait again is.",
			moments: []moment{
				{state: none},
				{state: other},
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowStarted}},
				{state: other, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowPaused}},
				{state: another},
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowResumed}},
				{state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}},
			},
		},
		"AtOnce": {
			reason: "What turns twice within a second is reported twice.",
			moments: []moment{
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowStarted}},
				{state: other, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowPaused}},
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowResumed}},
				{state: other, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowPaused}},
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowResumed}},
			},
		},
		"Never": {
			reason:  "One that was never in force ends too.",
			moments: []moment{{state: none}, {state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}}, {state: over}},
		},
		"Prolonged": {
			reason: "One that goes on after its end ends once more.",
			moments: []moment{
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowStarted}},
				{state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}},
				{state: active, until: time.Hour, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowResumed}},
				{state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}},
			},
		},
		"Unseen": {
			reason: "What happened while nobody looked is told when somebody does.",
			moments: []moment{
				{state: active, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowStarted}}, {after: time.Hour, state: over, events: []v1alpha1.EventReason{v1alpha1.EventReasonWindowEnded}},
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, now := of(nil), noon
			keys := map[string]bool{}

			for i, m := range tc.moments {
				now = now.Add(m.after)
				u.Spec.ValidUntil.Time = u.Spec.ValidUntil.Add(m.until)

				next := upgradeallowance.Next(u, m.state, nil, now)

				got := make([]v1alpha1.EventReason, 0, len(next.News))

				for _, n := range next.News {
					got = append(got, n.Reason)

					if keys[n.Key] {
						t.Errorf("%s\nmoment %d: %q is told a second time", tc.reason, i, n.Key)
					}

					keys[n.Key] = true
				}

				if diff := cmp.Diff(m.events, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\nmoment %d: news: -want, +got:\n%s", tc.reason, i, diff)
				}

				if again := upgradeallowance.Next(u, m.state, nil, now.Add(time.Second)); !cmp.Equal(again.News, next.News) {
					t.Errorf("%s\nmoment %d: told otherwise by who comes again: %+v, %+v", tc.reason, i, next.News, again.News)
				}

				if s := next.Status; s.Active != m.state.Active || s.Reason != m.state.Reason || s.ObservedGeneration != 3 {
					t.Errorf("%s\nmoment %d: status %+v", tc.reason, i, s)
				}

				u.Status = next.Status
			}
		})
	}
}

func TestThatAWindowIsSuspendedIsNoWarning(t *testing.T) {
	was := upgradeallowance.Next(of(nil), upgradeallowance.Evaluate(of(nil), upgradeallowance.Observation{}, noon), nil, noon).Status
	pause := func(u *v1alpha1.UpgradeAllowance, seen upgradeallowance.Observation) upgradeallowance.News {
		u.Status = was

		next := upgradeallowance.Next(u, upgradeallowance.Evaluate(u, seen, noon), nil, noon)
		if len(next.News) != 1 || next.News[0].Reason != v1alpha1.EventReasonWindowPaused {
			t.Fatalf("news: %+v", next.News)
		}

		return next.News[0]
	}

	if n := pause(suspended(of(nil)), upgradeallowance.Observation{}); n.Warning || n.Note != "Suspended: "+messageSuspended {
		t.Errorf("suspended: %+v", n)
	}

	if n := pause(byPods("x:v2"), upgradeallowance.Observation{Known: true}); !n.Warning {
		t.Errorf("without pods: %+v", n)
	}
}

func TestTheStatusOfAWindowDoesNotFlap(t *testing.T) {
	u := of(nil)
	state := upgradeallowance.State{Active: true, Reason: v1alpha1.ReasonActive, Message: "m"}
	ready := &metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInForce, ObservedGeneration: 3}

	u.Status = upgradeallowance.Next(u, state, ready, noon).Status

	got := make([]string, 0, len(u.Status.Conditions))
	for _, c := range u.Status.Conditions {
		got = append(got, c.Type+" "+string(c.Status)+" "+c.Reason)
	}

	want := []string{"Active True Active", "Started True Started", "Ready True InForce"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions: -want, +got:\n%s", diff)
	}

	again := upgradeallowance.Next(u, state, meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionReady), noon.Add(time.Hour))
	if diff := cmp.Diff(u.Status, again.Status); diff != "" || len(again.News) > 0 {
		t.Errorf("an hour later: -want, +got:\n%s%v", diff, again.News)
	}
}

// A column of kubectl get is empty where a field is left out.
func TestTheStatusSaysThatAWindowIsNotActive(t *testing.T) {
	raw, err := json.Marshal(upgradeallowance.Next(of(nil), upgradeallowance.State{Reason: v1alpha1.ReasonEnded}, nil, noon).Status)
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(raw), `"active":false`) {
		t.Errorf("the status is %s", raw)
	}
}
