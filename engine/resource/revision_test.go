// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestARevisionRunsTheFunctionByNameOrByInput(t *testing.T) {
	cases := map[string]struct {
		reason   string
		pipeline string
		want     bool
	}{
		"ByName":    {reason: "The step names the function.", pipeline: "[{functionRef: {name: f}}, {functionRef: {name: function-kausality}}]", want: true},
		"ByInput":   {reason: "A function of any name that takes our input is ours.", pipeline: "[{functionRef: {name: acme-gate}, input: {apiVersion: kausality.io/v1alpha1}}]", want: true},
		"OfOthers":  {reason: "Others have inputs of their own.", pipeline: "[{functionRef: {name: f}, input: {apiVersion: kausality.io.example.org/v1}}]"},
		"NoSteps":   {reason: "There is nothing to run.", pipeline: "[]"},
		"NoObjects": {reason: "What is no step runs nothing.", pipeline: "[1, null]"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, "{spec: {compositeTypeRef: {apiVersion: a.example.org/v1, kind: XShop}, pipeline: "+tc.pipeline+"}}")
			if got := resource.RunsFunction(u, []string{"function-kausality"}); got != tc.want {
				t.Errorf("%s\nRunsFunction: %v", tc.reason, got)
			}

			if got := resource.ComposesFor(u); got != (schema.GroupKind{Group: "a.example.org", Kind: "XShop"}) {
				t.Errorf("ComposesFor: %v", got)
			}
		})
	}
}

func TestAnXRSaysByWhatItIsComposed(t *testing.T) {
	for text, want := range map[string]string{
		"{spec: {crossplane: {compositionRevisionRef: {name: a}}}}": "a",
		"{spec: {compositionRevisionRef: {name: b}}}":               "b",
		"{spec: {compositionRef: {name: c}}}":                       "",
		"{}":                                                        "",
	} {
		if got := resource.RevisionOf(object(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWhetherTheFunctionRunsForAnXRItsRevisionSaysOrElseItsCondition(t *testing.T) {
	revisions := map[string]bool{"with": true, "without": false}

	const ran = "status: {conditions: [{type: Kausality, status: 'True'}]}"

	for text, want := range map[string]bool{
		"{spec: {crossplane: {compositionRevisionRef: {name: with}}}}":                   true,
		"{spec: {crossplane: {compositionRevisionRef: {name: without}}}, " + ran + "}":   false,
		"{spec: {crossplane: {compositionRevisionRef: {name: gone}}}, " + ran + "}":      true,
		"{spec: {crossplane: {compositionRevisionRef: {name: gone}}}}":                   false,
		"{spec: {compositionRevisionRef: {name: with}, resourceRefs: []}}":               true,
		"{spec: {resourceRef: {kind: XShop}}, metadata: {namespace: shop}, " + ran + "}": false, // A Claim shows it too.
		"{spec: {crossplane: {}}, metadata: {deletionTimestamp: 'now'}, " + ran + "}":    true,
		"{spec: {forProvider: {}}, metadata: {annotations: {kausality.io/trace: '[]'}}}": false,
	} {
		if got := resource.RunsFor(object(t, text), revisions); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
