// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestAnObjectMeansWhatItMeant in all that a log of the baseline may have of it.
func TestAnObjectMeansWhatItMeant(t *testing.T) {
	const xr = `{apiVersion: example.org/v1, kind: X, metadata: {name: x, generation: 5, annotations: {kausality.io/initialized: INIT}},
		spec: {resourceRefs: [{apiVersion: a/v1, kind: A, name: a}]}, status: {conditions: [{type: Ready, status: READY, lastTransitionTime: "2026-01-01T00:00:00Z"}, SAID]}}`

	settled := v1alpha1.Settled{Generation: 5, Request: 2}

	for name, tc := range map[string]struct {
		initialized, ready, said string
		want                     v1alpha1.Progress
		building                 bool
	}{
		"Settled": {
			initialized: `"true"`, ready: `"True"`, said: `{type: Kausality, status: "True", message: "generation 5: settled, request 2; 1 held: a"},
				{type: KausalityHeldChanges, status: "False", message: '{"generation":5,"revision":"r","status":"0123","idle":1}'}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 5, Request: 2, Settled: settled, Status: "0123", Idle: 1},
		},
		"NotRun": {
			initialized: `"true"`, ready: `"True"`, said: `{type: Kausality, status: Unknown, message: "generation 5: settled, request 2 [not run: a]"}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 5, Request: 2, Settled: settled},
		},
		"InProgress": {
			initialized: `"true"`, ready: `"False"`, said: `{type: Kausality, status: "True", message: "generation 5: in progress: a"}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing, Generation: 5},
		},
		"Building": {
			initialized: "null", ready: `"True"`, said: `{type: Kausality, status: "True", message: "generation 5: initializing"}`, building: true,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseInitializing, Generation: 5},
		},
		"LostEarly": {
			initialized: "null", ready: `"True"`, building: true,
			said: `{type: Kausality, status: Unknown, lastTransitionTime: "2026-01-01T00:00:04Z", message: A fatal error occurred}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseInitializing},
		},
		"LostLate": {
			initialized: "null", ready: `"True"`, said: `{type: Kausality, status: Unknown, lastTransitionTime: "2026-01-01T00:10:00Z", message: A fatal error occurred}`,
			want: v1alpha1.Progress{Phase: v1alpha1.PhaseProgressing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			text := strings.NewReplacer("INIT", tc.initialized, "READY", tc.ready, "SAID", tc.said).Replace(xr)

			if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
				t.Fatal(err)
			}

			u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

			if err := Object(u.Object); err != nil {
				t.Fatal(err)
			}

			got, _ := resource.ProgressOf(u)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if rec, _ := resource.InitializedOf(u); rec.Building != tc.building {
				t.Errorf("building: %t", rec.Building)
			}
		})
	}
}
