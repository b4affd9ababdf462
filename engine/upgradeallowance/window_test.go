// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

var (
	from  = time.Date(2024, time.January, 6, 15, 0, 0, 0, time.UTC)
	until = time.Date(2024, time.January, 6, 18, 0, 0, 0, time.UTC)
	noon  = from.Add(time.Hour)
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

func of(when *v1alpha1.ActivateWhen) *v1alpha1.UpgradeAllowance {
	return &v1alpha1.UpgradeAllowance{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "1", Generation: 3},
		Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: "system:serviceaccount:a:b",
			ValidFrom:      metav1.NewTime(from), ValidUntil: metav1.NewTime(until),
			Allow:        []v1alpha1.Permission{{Kind: "RDSInstance", Mutations: []string{"spec"}}},
			ActivateWhen: when,
		},
	}
}

func suspended(u *v1alpha1.UpgradeAllowance) *v1alpha1.UpgradeAllowance {
	u.Spec.Suspend = true

	return u
}

const messageSuspended = "spec.suspend is true: the window allows nothing"

func byPods(image string) *v1alpha1.UpgradeAllowance {
	return of(&v1alpha1.ActivateWhen{Image: image, PodSelector: &v1alpha1.PodSelector{Namespace: "sys", Labels: map[string]string{"app": "x"}}})
}

func byController() *v1alpha1.UpgradeAllowance {
	return of(&v1alpha1.ActivateWhen{ControllerRef: &v1alpha1.ControllerRef{
		Kind: "Deployment", Namespace: "sys", Name: "engine", MinGeneration: 15,
	}})
}

// Pods, as the API server has them.
const (
	newReady = `{kind: Pod, apiVersion: v1, metadata: {name: new, namespace: sys, uid: "1"}, spec: {nodeName: n, containers: [{name: proxy, image: p}, {name: a, image: "x:v2"}]},
  status: {phase: Running, hostIP: 10.0.0.1, conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "True"}],
  containerStatuses: [{name: a, image: "docker.io/x:v2", imageID: "docker-pullable://docker.io/x@sha256:22"}]}}`
	newUnready = `{kind: Pod, apiVersion: v1, metadata: {name: unready, namespace: sys}, spec: {containers: [{image: "x:v2"}]},
  status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`
	newPending  = `{kind: Pod, apiVersion: v1, metadata: {name: pending, namespace: sys}, spec: {containers: [{image: "x:v2"}]}, status: {phase: Pending}}`
	newLeaving  = `{kind: Pod, apiVersion: v1, metadata: {name: leaving, namespace: sys, deletionTimestamp: "2024-01-06T16:00:00Z"}, spec: {containers: [{image: "x:v2"}]}, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`
	newSidecar  = `{kind: Pod, apiVersion: v1, metadata: {name: sidecar, namespace: sys}, spec: {containers: [{image: p}], initContainers: [{image: "x:v2"}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
	oldReady    = `{kind: Pod, apiVersion: v1, metadata: {name: old, namespace: sys}, spec: {containers: [{image: "x:v1"}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
	oldLeaving  = `{kind: Pod, apiVersion: v1, metadata: {name: old, namespace: sys, deletionTimestamp: "2024-01-06T16:00:00Z"}, spec: {containers: [{image: "x:v1"}]}, status: {phase: Running}}`
	oldFailed   = `{kind: Pod, apiVersion: v1, metadata: {name: evicted, namespace: sys}, spec: {containers: [{image: "x:v1"}]}, status: {phase: Failed}}`
	oldDone     = `{kind: Pod, apiVersion: v1, metadata: {name: done, namespace: sys}, spec: {containers: [{image: "x:v1"}]}, status: {phase: Succeeded}}`
	podsAreNew  = "all pods run x:v2"
	controller  = `{kind: Deployment, apiVersion: apps/v1, metadata: {name: engine, namespace: sys, generation: 16}, spec: {replicas: 3}, status: {replicas: 3, observedGeneration: `
	isDeleting  = `{kind: Deployment, apiVersion: apps/v1, metadata: {name: engine, namespace: sys, deletionTimestamp: "2024-01-06T16:00:00Z"}, status: {observedGeneration: 16}}`
	neverLooked = `{kind: Deployment, apiVersion: apps/v1, metadata: {name: engine, namespace: sys, generation: 16}}`
)

func TestAWindowIsInForceWhenItsTimeHasComeAndItsNewLogicRuns(t *testing.T) {
	cases := map[string]struct {
		reason  string
		window  *v1alpha1.UpgradeAllowance
		now     time.Time
		unknown bool
		objects []string
		want    upgradeallowance.State
	}{
		"Before": {
			reason: "Before its time it is not.",
			window: of(nil), now: from.Add(-time.Nanosecond),
			want: upgradeallowance.State{Reason: "NotStarted", Message: "the window begins at 2024-01-06T15:00:00Z", Again: from},
		},
		"First": {
			reason: "It begins at validFrom.",
			window: of(nil), now: from,
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: "the window is in force", Again: until},
		},
		"Last": {
			reason: "And is in force to the last moment.",
			window: of(nil), now: until.Add(-time.Nanosecond),
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: "the window is in force", Again: until},
		},
		"End": {
			reason: "At validUntil it is over.",
			window: of(nil), now: until,
			want: upgradeallowance.State{Reason: "Ended", Message: "the window ended at 2024-01-06T18:00:00Z"},
		},
		"BeforeWithPods": {
			reason: "Pods that run the image do not begin it early.",
			window: byPods("x:v2"), now: from.Add(-time.Hour), objects: []string{newReady},
			want: upgradeallowance.State{Reason: "NotStarted", Message: "the window begins at 2024-01-06T15:00:00Z", Again: from},
		},
		"EndWithPods": {
			reason: "Nor do they make it last.",
			window: byPods("x:v2"), now: until, objects: []string{newReady},
			want: upgradeallowance.State{Reason: "Ended", Message: "the window ended at 2024-01-06T18:00:00Z"},
		},
		"Suspended": {
			reason: "While somebody suspends it, it is not, though its time has come.",
			window: suspended(of(nil)), now: noon,
			want: upgradeallowance.State{Reason: "Suspended", Message: messageSuspended, Again: until},
		},
		"SuspendedBefore": {
			reason: "Nor will it be when its time comes: that is what there is to say.",
			window: suspended(of(nil)), now: from.Add(-time.Hour),
			want: upgradeallowance.State{Reason: "Suspended", Message: messageSuspended, Again: until},
		},
		"SuspendedWithPods": {
			reason: "Pods that run the image do not resume it.",
			window: suspended(byPods("x:v2")), now: noon, objects: []string{newReady},
			want: upgradeallowance.State{Reason: "Suspended", Message: messageSuspended, Again: until},
		},
		"SuspendedEnd": {
			reason: "Its time ends it all the same.",
			window: suspended(of(nil)), now: until,
			want: upgradeallowance.State{Reason: "Ended", Message: "the window ended at 2024-01-06T18:00:00Z"},
		},
		"Invalid": {
			reason: "What cannot be used is not in force.",
			window: func() *v1alpha1.UpgradeAllowance {
				u := of(nil)
				u.Spec.Allow[0].Mutations = []string{"spec["}

				return u
			}(), now: noon,
			want: upgradeallowance.State{Reason: "Invalid", Message: "spec.allow[0].mutations[0]"},
		},
		"Unknown": {
			reason: "Where nobody can look, it is not in force, and says what to mend.",
			window: byPods("x:v2"), now: noon, unknown: true,
			want: upgradeallowance.State{
				Reason: "NotObserved", Message: "cannot read the pods in namespace sys: check that the manager may list and watch it", Again: until,
			},
		},
		"NoPods": {
			reason: "Somebody must run the new logic.",
			window: byPods("x:v2"), now: noon,
			want: upgradeallowance.State{Reason: "NoPods", Message: `no pod runs that podSelector selects in namespace "sys"`, Again: until},
		},
		"Pods": {
			reason: "All pods run the image and are ready.",
			window: byPods("x:v2"), now: noon, objects: []string{newReady},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: podsAreNew, Again: until},
		},
		"InitContainer": {
			reason: "The image may be that of an init container, such as a sidecar.",
			window: byPods("x:v2"), now: noon, objects: []string{newSidecar, newReady},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: podsAreNew, Again: until},
		},
		"OneNotReady": {
			reason: "One that is not ready is enough to wait; the first by name is named.",
			window: byPods("x:v2"), now: noon, objects: []string{newUnready, newReady, newPending},
			want: upgradeallowance.State{Reason: "PodNotReady", Message: "pod sys/pending is not ready", Again: until},
		},
		"OneOfAnotherImage": {
			reason: "One of another image ends it, ready or not.",
			window: byPods("x:v2"), now: noon, objects: []string{newUnready, oldReady},
			want: upgradeallowance.State{Reason: "PodRunsAnotherImage", Message: "pod sys/old does not run x:v2", Again: until},
		},
		"OldOneLeaving": {
			reason: "The old logic runs until its pod is gone.",
			window: byPods("x:v2"), now: noon, objects: []string{newReady, oldLeaving},
			want: upgradeallowance.State{Reason: "PodRunsAnotherImage", Message: "pod sys/old does not run x:v2", Again: until},
		},
		"NewOneLeaving": {
			reason: "A pod that is scaled down is not ready any more, and takes nothing along.",
			window: byPods("x:v2"), now: noon, objects: []string{newReady, newLeaving},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: podsAreNew, Again: until},
		},
		"OnlyLeaving": {
			reason: "But it is none that runs the new logic from now on.",
			window: byPods("x:v2"), now: noon, objects: []string{newLeaving},
			want: upgradeallowance.State{Reason: "NoPods", Message: `no pod runs that podSelector selects in namespace "sys"`, Again: until},
		},
		"EndedPods": {
			reason: "Evicted and completed pods run nothing.",
			window: byPods("x:v2"), now: noon, objects: []string{newReady, oldFailed, oldDone},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: podsAreNew, Again: until},
		},
		"OnlyEndedPods": {
			reason: "Nor do they when they are all there is.",
			window: byPods("x:v1"), now: noon, objects: []string{oldFailed, oldDone},
			want: upgradeallowance.State{Reason: "NoPods", Message: `no pod runs that podSelector selects in namespace "sys"`, Again: until},
		},
		"NotByAnotherName": {
			reason: "References are compared as they are written: not with what the node makes of them.",
			window: byPods("docker.io/x:v2"), now: noon, objects: []string{newReady},
			want: upgradeallowance.State{Reason: "PodRunsAnotherImage", Message: "pod sys/new does not run docker.io/x:v2", Again: until},
		},
		"Digest": {
			reason: "A digest may be known to the node only.",
			window: byPods("docker.io/x@sha256:22"), now: noon, objects: []string{newReady},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: "all pods run docker.io/x@sha256:22", Again: until},
		},
		"OtherDigest": {
			reason: "Another digest is another image.",
			window: byPods("docker.io/x@sha256:23"), now: noon, objects: []string{newReady},
			want: upgradeallowance.State{Reason: "PodRunsAnotherImage", Message: "pod sys/new does not run docker.io/x@sha256:23", Again: until},
		},
		"NoController": {
			reason: "A workload that is not there has observed nothing.",
			window: byController(), now: noon,
			want: upgradeallowance.State{Reason: "ControllerNotFound", Message: "Deployment sys/engine does not exist", Again: until},
		},
		"ControllerUnknown": {
			reason: "Nor one that cannot be read.",
			window: byController(), now: noon, unknown: true,
			want: upgradeallowance.State{
				Reason: "NotObserved", Message: "cannot read Deployment sys/engine: check that the manager may list and watch it", Again: until,
			},
		},
		"ControllerLeaving": {
			reason: "One that is being deleted will run nothing.",
			window: byController(), now: noon, objects: []string{isDeleting},
			want: upgradeallowance.State{Reason: "ControllerNotFound", Message: "Deployment sys/engine is being deleted", Again: until},
		},
		"ControllerNew": {
			reason: "What nobody has looked at yet is at no generation.",
			window: byController(), now: noon, objects: []string{neverLooked},
			want: upgradeallowance.State{Reason: "ControllerBehind", Message: "Deployment sys/engine has observed generation 0 of 15", Again: until},
		},
		"ControllerBehind": {
			reason: "The generation that counts is the observed one.",
			window: byController(), now: noon, objects: []string{controller + "14}}"},
			want: upgradeallowance.State{Reason: "ControllerBehind", Message: "Deployment sys/engine has observed generation 14 of 15", Again: until},
		},
		"Controller": {
			reason: "At minGeneration it is in force.",
			window: byController(), now: noon, objects: []string{controller + "15}}"},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: "Deployment sys/engine has observed generation 15", Again: until},
		},
		"ControllerAhead": {
			reason: "And after it.",
			window: byController(), now: noon, objects: []string{controller + "16}}"},
			want: upgradeallowance.State{Active: true, Reason: "Active", Message: "Deployment sys/engine has observed generation 16", Again: until},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := upgradeallowance.Observation{Known: !tc.unknown}
			trimmed := upgradeallowance.Observation{Known: !tc.unknown}

			for _, o := range tc.objects {
				u := parse(t, o)
				seen.Objects = append(seen.Objects, u)
				trimmed.Objects = append(trimmed.Objects, upgradeallowance.Trim(u))
			}

			got := upgradeallowance.Evaluate(tc.window, seen, tc.now)
			if tc.want.Reason == v1alpha1.ReasonInvalid && strings.Contains(got.Message, tc.want.Message) {
				got.Message = tc.want.Message
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nEvaluate: -want, +got:\n%s", tc.reason, diff)
			}

			if a, b := upgradeallowance.Evaluate(tc.window, seen, tc.now), upgradeallowance.Evaluate(tc.window, trimmed, tc.now); a != b {
				t.Errorf("%s\nEvaluate of what is trimmed: %+v, want %+v", tc.reason, b, a)
			}
		})
	}
}

func TestAWindowWaitsForPodsOnlyWhileTheyMatter(t *testing.T) {
	for name, tc := range map[string]struct {
		window *v1alpha1.UpgradeAllowance
		now    time.Time
		want   bool
	}{
		"Before":    {byPods("x"), from.Add(-time.Second), false},
		"First":     {byPods("x"), from, true},
		"Last":      {byController(), until.Add(-time.Nanosecond), true},
		"End":       {byPods("x"), until, false},
		"Nothing":   {of(nil), noon, false},
		"Suspended": {suspended(byPods("x")), noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := upgradeallowance.Waits(tc.window, tc.now); got != tc.want {
				t.Errorf("Waits: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTrimLeavesLittle(t *testing.T) {
	got := upgradeallowance.Trim(parse(t, newReady)).Object
	want := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "new", "namespace": "sys", "uid": "1"},
		"spec": map[string]any{"containers": []any{map[string]any{"image": "p"}, map[string]any{"image": "x:v2"}}},
		"status": map[string]any{
			"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
			"containerStatuses": []any{map[string]any{"imageID": "docker-pullable://docker.io/x@sha256:22"}},
		},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Trim: -want, +got:\n%s", diff)
	}
}

func TestWindowsThatCannotBeUsedAreLeftOutAndSayWhy(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.UpgradeAllowance)
		want   string
	}{
		"Backwards": {
			reason: "It would never be in force.",
			change: func(u *v1alpha1.UpgradeAllowance) { u.Spec.ValidUntil = u.Spec.ValidFrom },
			want:   "spec.validUntil",
		},
		"Mutation": {
			reason: "It would allow nothing.",
			change: func(u *v1alpha1.UpgradeAllowance) { u.Spec.Allow[0].Mutations = []string{"a["} },
			want:   "spec.allow[0].mutations[0]",
		},
		"Selector": {
			reason: "It would select nothing.",
			change: func(u *v1alpha1.UpgradeAllowance) {
				u.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
			},
			want: "spec.selector.matchLabels",
		},
		"PodLabels": {
			reason: "No pod could have it.",
			change: func(u *v1alpha1.UpgradeAllowance) {
				u.Spec.ActivateWhen.PodSelector.Labels = map[string]string{"a": "b c"}
			},
			want: "spec.activateWhen.podSelector.labels",
		},
		"Neither": {
			reason: "It would never know.",
			change: func(u *v1alpha1.UpgradeAllowance) { u.Spec.ActivateWhen.PodSelector = nil },
			want:   "spec.activateWhen",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bad := byPods("x")
			tc.change(bad)

			if errs := upgradeallowance.Validate(bad); len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("%s\nValidate: %v, want one error about %s", tc.reason, errs, tc.want)
			}
		})
	}
}
