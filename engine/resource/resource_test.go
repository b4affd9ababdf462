// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

func TestAParentIsTheControllerOrTheClaim(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           resource.Reference
		ok             bool
	}{
		"Root":  {reason: "Without either it is a root.", object: "{metadata: {name: a}, spec: {}}"},
		"Owner": {reason: "An owner that does not control is none.", object: "{metadata: {ownerReferences: [{apiVersion: a/v1, kind: A, name: a, uid: u}, {controller: false}]}}"},
		"Controller": {
			reason: "The one that controls.", object: "{metadata: {namespace: ns, ownerReferences: [{kind: B, name: b}, {apiVersion: a/v1, kind: A, name: a, uid: u, controller: true}]}}",
			want: resource.Reference{APIVersion: "a/v1", Kind: "A", Namespace: "ns", Name: "a", UID: "u"}, ok: true,
		},
		"Claim": {
			reason: "An XR's Claim.", object: "{apiVersion: example.org/v1, kind: XA, metadata: {name: a-1}, spec: {claimRef: {apiVersion: example.org/v1, kind: A, namespace: ns, name: a}}}",
			want: resource.Reference{APIVersion: "example.org/v1", Kind: "A", Namespace: "ns", Name: "a", XR: "XA.example.org/a-1"}, ok: true,
		},
		"ClaimWithoutName": {reason: "A reference without a name refers to nothing.", object: "{spec: {claimRef: {kind: A}}}"},
		"Garbage":          {reason: "Garbage is no parent.", object: "{metadata: {ownerReferences: [a, 1, {controller: yes please}]}, spec: {claimRef: a}}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := resource.ParentOf(object(t, tc.object))
			if diff := cmp.Diff(tc.want, got); ok != tc.ok || diff != "" {
				t.Errorf("%s\nParentOf: %v, -want, +got:\n%s", tc.reason, ok, diff)
			}
		})
	}

	claim := object(t, "{apiVersion: example.org/v1, kind: A, metadata: {namespace: ns, name: a}, spec: {resourceRef: {apiVersion: example.org/v1, kind: XA, name: a-1}}}")
	for xr, want := range map[string]bool{"XA.example.org/a-1": true, "XA.example.org/a-2": false, "XB.example.org/a-1": false, "": true} {
		if got := (resource.Reference{APIVersion: "example.org/v1", Kind: "A", Namespace: "ns", Name: "a", XR: xr}).Is(claim); got != want {
			t.Errorf("the Claim of %q: %t", xr, got)
		}
	}

	if got := (resource.Reference{APIVersion: "a/v1", Kind: "A"}).GroupKind().String(); got != "A.a" {
		t.Errorf("GroupKind: %q", got)
	}
}

func TestCrossplanesKindsAreReported(t *testing.T) {
	cases := map[string]struct {
		object                           string
		managed, claim, composite, bound bool
	}{
		"Managed":    {object: "{spec: {forProvider: {}}}", managed: true},
		"Claim":      {object: "{apiVersion: example.org/v1, metadata: {namespace: ns}, spec: {resourceRef: {apiVersion: example.org/v2, kind: X}}}", claim: true},
		"ClaimOther": {object: "{apiVersion: example.org/v1, metadata: {namespace: ns}, spec: {resourceRef: {apiVersion: example.com/v1, kind: X}}}"},
		"BuiltIn":    {object: "{apiVersion: v1, metadata: {namespace: ns}, spec: {resourceRef: {apiVersion: v1, kind: X}}}"},
		"Refers": {object: "{apiVersion: example.org/v1, metadata: {namespace: ns}, " +
			"spec: {crossplane: {}, resourceRef: {apiVersion: example.org/v1, kind: X}}}", composite: true},
		"ClaimNew":   {object: "{metadata: {namespace: ns}, spec: {size: a}}"},
		"BoundXR":    {object: "{apiVersion: example.org/v1, spec: {claimRef: {apiVersion: example.org/v1beta1, kind: A, namespace: ns, name: a}}}", composite: true, bound: true},
		"XR":         {object: "{spec: {resourceRefs: []}}", composite: true},
		"Namespaced": {object: "{metadata: {namespace: ns}, spec: {crossplane: {}}}", composite: true},
		"Other":      {object: "{spec: {forProvider: a}}"},
		"Nothing":    {object: "{}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, tc.object)
			got := []bool{resource.IsManaged(u), resource.IsClaim(u), resource.IsComposite(u), resource.BoundToClaim(u)}

			if diff := cmp.Diff([]bool{tc.managed, tc.claim, tc.composite, tc.bound}, got); diff != "" {
				t.Errorf("managed, claim, composite, bound: -want, +got:\n%s", diff)
			}
		})
	}
}

// midnight is when the XRs that are lost became ready.
var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// lost is an XR of which Crossplane has taken away what the function had said.
func lost(building bool) string {
	rec := "null"
	if building {
		rec = `'{"v":1,"building":true}'`
	}

	return "{metadata: {generation: 1, annotations: {kausality.io/initialized: " + rec + "}}, status: {conditions: [" +
		"{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}, " +
		"{type: KausalityState, status: Unknown, message: A fatal error occurred}]}}"
}

func TestHowFarAControllerHasCome(t *testing.T) {
	cases := map[string]struct {
		reason, object   string
		observed         int64
		ready, converged bool
	}{
		"Nothing":     {"A new object.", "{metadata: {name: a, generation: 1}}", 0, false, true},
		"TopLevel":    {"A kind with the field.", "{metadata: {generation: 2}, status: {observedGeneration: 2}}", 2, true, true},
		"Behind":      {"Its controller is behind.", "{metadata: {generation: 3}, status: {observedGeneration: 2}}", 2, true, false},
		"Synced":      {"A kind with conditions.", "{metadata: {generation: 2}, status: {conditions: [{type: Synced, status: 'True', observedGeneration: 2}, {type: Ready, status: 'True', observedGeneration: 1}]}}", 2, true, true},
		"Failed":      {"A failed attempt does not count.", "{metadata: {generation: 2}, status: {conditions: [{type: Synced, status: 'False', observedGeneration: 2}, {type: Ready, status: 'True', observedGeneration: 1}]}}", 1, true, false},
		"NotReady":    {"Not ready yet.", "{metadata: {generation: 1}, status: {conditions: [{type: Ready, status: 'False', observedGeneration: 1}]}}", 0, false, false},
		"Available":   {"Available is as good.", "{metadata: {generation: 1}, status: {conditions: [{type: Available, status: 'True'}]}}", 0, true, true},
		"Marked":      {"What was ready once stays so.", "{metadata: {generation: 1, annotations: {kausality.io/initialized: '{\"v\":1}'}}, status: {conditions: [{type: Ready, status: 'False'}]}}", 0, true, false},
		"OtherMark":   {"A record of another version says no less.", "{metadata: {generation: 1, annotations: {kausality.io/initialized: '{\"v\":2}'}}}", 0, true, true},
		"OldMark":     {"Nor does one of before.", "{metadata: {generation: 1, annotations: {kausality.io/initialized: 'true'}}}", 0, true, true},
		"XR":          {"An XR is ready when it says so, not when it was seen.", "{metadata: {generation: 1}, spec: {resourceRefs: []}, status: {conditions: [{type: Synced, status: 'True', observedGeneration: 1}]}}", 1, false, true},
		"BuiltUp":     {"Ready for a moment, while more is to come.", "{metadata: {generation: 1}, status: {conditions: [{type: Ready, status: 'True'}, " + fixture.State(v1alpha1.PhaseInitializing, 1, 0) + "]}}", 0, false, true},
		"BuiltOnce":   {"Not once it has settled.", "{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True'}, " + fixture.State(v1alpha1.PhaseProgressing, 2, 0) + "]}}", 0, true, true},
		"LostEarly":   {"Ready for a moment while it is built up, and then Crossplane took away what the function said.", lost(true), 0, false, true},
		"LostUnready": {"Built up, and not ready yet.", strings.Replace(lost(true), "status: 'True', last", "status: 'False', last", 1), 0, false, false},
		"LostKnown":   {"No record says that it is built up.", lost(false), 0, true, true},
		"Composed":    {"It was composed before, and nothing is recorded.", "{metadata: {generation: 1}, spec: {resourceRefs: [{apiVersion: a/v1, kind: A, name: a}]}, status: {conditions: [{type: Ready, status: 'False'}]}}", 0, true, false},
		"FirstFails":  {"Its first run fails.", "{metadata: {generation: 1}, spec: {resourceRefs: [{apiVersion: a/v1, kind: A, name: a}]}, status: {conditions: [{type: Synced, status: 'False'}]}}", 0, false, false},
		"Building":    {"It composes something for the first time.", "{metadata: {generation: 1, annotations: {kausality.io/initialized: '{\"v\":1,\"building\":true}'}}, spec: {resourceRefs: [{apiVersion: a/v1, kind: A, name: a}]}}", 0, false, true},
		"WrittenBack": {"What was said first is written back for a moment.", "{metadata: {generation: 2, annotations: {kausality.io/initialized: '{\"v\":1,\"settled\":{\"generation\":1}}'}}, status: {conditions: [" + fixture.State(v1alpha1.PhaseInitializing, 1, 0) + "]}}", 0, true, true},
		"Garbage":     {"Garbage says nothing.", "{metadata: {generation: a}, status: {observedGeneration: b, conditions: [1, {type: 2}, {type: Ready}]}}", 0, false, false},
		"Terminating": {"What goes away does not finish.", "{metadata: {generation: 1, deletionTimestamp: '2026-01-01T00:00:00Z'}}", 0, false, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, tc.object)
			u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

			if got := resource.ObservedGeneration(u); got != tc.observed {
				t.Errorf("%s\nObservedGeneration: %d, want %d", tc.reason, got, tc.observed)
			}

			if got := resource.SeenReady(u, midnight.Add(time.Minute)); got != tc.ready {
				t.Errorf("%s\nSeenReady: %v", tc.reason, got)
			}

			if got := resource.Converged(u); got != tc.converged {
				t.Errorf("%s\nConverged: %v", tc.reason, got)
			}
		})
	}
}

func TestAnXRIsNotBuiltUpForEverThoughNobodySaysSo(t *testing.T) {
	u := object(t, lost(true))

	for after, want := range map[time.Duration]bool{resource.InitializingLimit - time.Second: false, resource.InitializingLimit: true} {
		if got := resource.SeenReady(u, midnight.Add(after)); got != want {
			t.Errorf("ready for %s: SeenReady %v, want %v", after, got, want)
		}
	}
}

func TestTheStateOfAnXRSaysWhatHasSettled(t *testing.T) {
	const initialized = `{"v":1,"settled":{"generation":11,"request":2}}`

	for name, tc := range map[string]struct {
		reason, state, status, annotation string
		want                              v1alpha1.Progress
		none, notRun                      bool
	}{
		"Settled": {
			reason: "The function has said so.", state: fixture.StateMessage(v1alpha1.PhaseSettled, 12, 1),
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 12, Request: 1, Settled: v1alpha1.Settled{Generation: 12, Request: 1}},
		},
		"Rest": {
			reason: "Nobody reads on who asks for that alone.", state: strings.TrimSuffix(fixture.StateMessage(v1alpha1.PhaseProgressing, 12, 0), "}") + ", and more",
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing, Generation: 12},
		},
		"Later": {
			reason: "The annotation may say more, for an older state was written back.", annotation: initialized,
			state: fixture.StateMessage(v1alpha1.PhaseSettled, 11, 1),
			want:  v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 11, Request: 1, Settled: v1alpha1.Settled{Generation: 11, Request: 2}},
		},
		"Earlier": {
			reason: "And less.", annotation: initialized, state: fixture.StateMessage(v1alpha1.PhaseOverdue, 12, 0),
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseOverdue, Generation: 12, Settled: v1alpha1.Settled{Generation: 12}},
		},
		"Failed": {
			reason: "A run of the pipeline failed.", annotation: initialized, status: "Unknown", state: fixture.StateMessage(v1alpha1.PhaseSettled, 12, 0),
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing, Settled: v1alpha1.Settled{Generation: 11, Request: 2}},
		},
		"OtherVersion": {
			reason: "Nobody knows what it means.", annotation: initialized, state: `{"v":2,"progress":{"phase":"Settled","generation":12}}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing, Settled: v1alpha1.Settled{Generation: 11, Request: 2}},
		},
		"Before": {
			reason: "It is of before there were versions.", state: `{"generation":12,"revision":"a"}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing},
		},
		"NotRun": {
			reason: "The function does not run any more: what it said stands for ever.", state: fixture.StateMessage(v1alpha1.PhaseSettled, 11, 0), notRun: true, none: true,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 11, Settled: v1alpha1.Settled{Generation: 11}},
		},
		"Wiped": {
			reason: "The annotation alone is left.", annotation: initialized,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing, Settled: v1alpha1.Settled{Generation: 11, Request: 2}},
		},
		"OfAnother": {
			reason: "It is of another object of that name, from whose backup this one was made.", annotation: `{"v":1,"settled":{"generation":57}}`,
			none: true, want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing},
		},
		"StateOfAnother": {
			reason: "So may the state be.", state: fixture.StateMessage(v1alpha1.PhaseSettled, 57, 0),
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing},
		},
		"Nothing": {reason: "No function reports.", none: true, want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGeneration(12)

			if tc.state != "" {
				u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
					"type": v1alpha1.ConditionState, "status": tc.status, "message": tc.state,
				}}}
			}

			if tc.notRun {
				u.Object["status"] = map[string]any{"conditions": append(resource.List(u.Object, "status", "conditions"), map[string]any{
					"type": v1alpha1.ConditionKausality, "status": "Unknown", "reason": v1alpha1.ReasonNotRun,
				})}
			}

			if tc.annotation != "" {
				u.SetAnnotations(map[string]string{v1alpha1.AnnotationInitialized: tc.annotation})
			}

			got, reports := resource.ProgressOf(u)
			if diff := cmp.Diff(tc.want, got); diff != "" || reports == tc.none {
				t.Errorf("%s\n%t, -want, +got:\n%s", tc.reason, reports, diff)
			}
		})
	}
}

func TestFieldsAreReadInAnyNumberType(t *testing.T) {
	obj := map[string]any{"a": map[string]any{"i": 3, "f": 4.0, "l": int64(5), "s": "x", "list": []any{"a", 1, "b"}}}
	if resource.Int(obj, "a", "i") != 3 || resource.Int(obj, "a", "f") != 4 || resource.Int(obj, "a", "l") != 5 || resource.Int(obj, "a", "s") != 0 {
		t.Error("Int takes whole numbers of any type")
	}

	if diff := cmp.Diff([]string{"a", "b"}, resource.Strings(obj, "a", "list")); diff != "" {
		t.Errorf("Strings, -want, +got:\n%s", diff)
	}

	if _, ok := resource.Value(obj, "a", "s", "t"); ok || resource.Strings(obj, "b") != nil || resource.Map(obj, "a", "s") != nil {
		t.Error("what is not there is not there")
	}

	named := object(t, "{metadata: {generateName: a-}}")
	if resource.Name(named) != "a-" || resource.Name(object(t, "{metadata: {name: b, generateName: a-}}")) != "b" {
		t.Error("an object without a name goes by its prefix")
	}
}

func TestCrossplaneComposesUntilItsOwnFinalizerIsGone(t *testing.T) {
	cases := map[string]struct {
		object string
		want   bool
	}{
		"Composing": {object: "{metadata: {finalizers: [kausality.io/deletion, composite.apiextensions.crossplane.io]}}", want: true},
		"Done":      {object: "{metadata: {finalizers: [kausality.io/deletion, foregroundDeletion]}}"},
		"Claim":     {object: "{metadata: {finalizers: [finalizer.apiextensions.crossplane.io]}}"},
		"Nothing":   {object: "{}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resource.Composing(object(t, tc.object)); got != tc.want {
				t.Errorf("%t", got)
			}
		})
	}
}
