// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const (
	composedLab = `{apiVersion: example.org/v1, kind: Lab, metadata: {name: physics, namespace: team-a, uid: lab},
  spec: {crossplane: {resourceRefs: [], compositionRevisionRef: {name: labs-1}}}}`
	labs = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: labs-1},
  spec: {pipeline: [{step: a, functionRef: {name: function-a}}, {step: b, functionRef: {name: function-b}}]}}`
	update = `{apiVersion: pkg.crossplane.io/v1, kind: FunctionRevision, metadata: {name: function-b-2, labels: {pkg.crossplane.io/package: function-b},
  creationTimestamp: "2026-03-05T11:00:00Z"}, spec: {desiredState: Active, revision: 2}}`
)

// TestWhatOnlyAPipelineExplainsNamesUpdatesOfItsFunctions once, as of when it was first held.
func TestWhatOnlyAPipelineExplainsNamesUpdatesOfItsFunctions(t *testing.T) {
	pipeline := instance("db", "spec.size")
	pipeline.Cause = &v1alpha1.Cause{Type: v1alpha1.CausePipeline}
	composition := instance("db", "spec.region")
	composition.Cause = &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Revision: "labs-1"}

	for name, tc := range map[string]struct {
		reason  string
		objects []string
		fail    error
		want    []string
	}{
		"Updated":          {reason: "An update may be why.", objects: []string{composedLab, labs, update}, want: []string{"function-b-2"}},
		"NotUpdated":       {reason: "None was.", objects: []string{composedLab, labs}},
		"NoRevision":       {reason: "Nobody knows what its pipeline runs.", objects: []string{lab, update}},
		"RevisionGone":     {reason: "Nor where that is gone.", objects: []string{composedLab, update}},
		"CannotBeListed":   {reason: "It is listed all the same.", objects: []string{composedLab, labs, update}, fail: errors.New("boom")}, //nolint:err113 // Of this test.
		"OfAnotherPackage": {reason: "It is none of its.", objects: []string{composedLab, labs, strings.ReplaceAll(update, "function-b", "function-c")}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.objects...)
			if tc.fail != nil {
				h.fail["list FunctionRevisionList"] = tc.fail
			}

			said := func() [][]string {
				pch := h.pch(t)
				out := make([][]string, 0, len(pch.Status.Changes))

				for _, e := range pch.Status.Changes {
					out = append(out, append([]string{e.Field}, e.Cause.Functions...))
				}

				slices.SortFunc(out, func(a, b []string) int { return strings.Compare(a[0], b[0]) })

				return out
			}
			want := [][]string{{"spec.region"}, append([]string{"spec.size"}, tc.want...)}

			h.change(t, "Lab physics", lists(pipeline, composition))
			h.observe(t, "Lab physics")

			if diff := cmp.Diff(want, said()); diff != "" {
				t.Fatalf("%s\nFields and functions, -want, +got:\n%s", tc.reason, diff)
			}

			// It stays what it was.
			h.now = h.now.Add(48 * time.Hour)
			h.change(t, "Lab physics", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
			h.observe(t, "Lab physics")

			if diff := cmp.Diff(want, said()); diff != "" {
				t.Errorf("%s\nFields and functions two days later, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFunctionRevisionsAreReadOnceForMany for after an update there are many that ask.
func TestFunctionRevisionsAreReadOnceForMany(t *testing.T) {
	h := newHarness(t, update)
	count := func() int {
		return len(slices.DeleteFunc(slices.Clone(h.live), func(s string) bool { return s != "list FunctionRevisionList" }))
	}

	for i, want := range []int{1, 1, 2} {
		if list, err := h.Reconciler.functionRevisions(t.Context()); err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}

		if got := count(); got != want {
			t.Errorf("after %d times they were read %d times, want %d", i+1, got, want)
		}

		h.now = h.now.Add(functionsFor * 2 / 3)
	}
}
