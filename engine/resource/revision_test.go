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
