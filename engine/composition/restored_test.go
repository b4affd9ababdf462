// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAnXRThatComposesWhatIsOlderWasBuiltUpBefore(t *testing.T) {
	const (
		made  = "{kind: X, metadata: {name: x, creationTimestamp: '2026-01-02T00:00:00Z'}, spec: {resourceRefs: [{kind: A, name: a}]}}"
		older = "{kind: A, metadata: {name: a, creationTimestamp: '2026-01-01T00:00:00Z'}}"
		newer = "{kind: A, metadata: {name: a, creationTimestamp: '2026-01-03T00:00:00Z'}}"
	)

	for name, tc := range map[string]struct {
		reason, xr, observed string
		want                 bool
	}{
		"Restored": {"It was restored.", made, older, true},
		"Made":     {"It has made that.", made, newer, false},
		"Of another": {
			"Its record is of another one.", edit(t, made, "name: x,", `name: x, generation: 1, annotations: {kausality.io/initialized: '{"v":1,"building":true,"settled":{"generation":5}}'},`),
			older, true,
		},
		"Building": {
			"It takes over what is older.", edit(t, made, "name: x,", `name: x, annotations: {kausality.io/initialized: '{"v":1,"building":true}'},`), older, false,
		},
		"Reported": {
			"The function says that it is built up.", edit(t, made, "name: a}]}", "name: a}]}, status: {conditions: ["+fixture.State(v1alpha1.PhaseInitializing, 1, 0)+"]}"), older, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			xr := object(t, tc.xr)
			was := xr.DeepCopy()
			got := composition.Recorded(xr, map[string]*unstructured.Unstructured{"a": object(t, tc.observed)})

			if is := resource.SeenReady(got, time.Now()); is != tc.want {
				t.Errorf("%s\nSeenReady: %v", tc.reason, is)
			}

			if resource.Annotation(xr, v1alpha1.AnnotationInitialized) != resource.Annotation(was, v1alpha1.AnnotationInitialized) {
				t.Errorf("%s\nthe XR is modified", tc.reason)
			}
		})
	}
}
