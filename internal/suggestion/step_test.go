// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatStepsDoIsToldApart(t *testing.T) {
	pipeline := func(steps string) string {
		return "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: " +
			"{compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, mode: Pipeline, pipeline: [" + steps + "]}}"
	}

	const patches = "{step: one, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
		"[{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}]}]}}"

	const started = "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n"

	for name, tc := range map[string]struct{ reason, given, policies, problems string }{
		"Quiet": {
			reason: "Some functions are known to compose nothing.",
			given: pipeline("{step: env, functionRef: {name: e}, input: {apiVersion: environmentconfigs.fn.crossplane.io/v1beta1, kind: Input}}, " + patches +
				", {step: ready, functionRef: {name: crossplane-contrib-function-auto-ready}}, {step: k, functionRef: {name: function-kausality}}, " +
				"{step: k2, functionRef: {name: other}, input: {apiVersion: kausality.io/v1alpha1, kind: Input}}"),
			policies: started,
		},
		"Other": {
			reason: "Of others nobody knows.", given: pipeline(patches + ", {step: two, functionRef: {name: function-kcl}}"), policies: started,
			problems: "Composition things: step two: what function-kcl makes of the XR's fields is not known: " +
				"run it with mode Audit and see with --from-log or --held, or write policies for it\n",
		},
		"PatchedTwice": {
			reason: "A step without a base patches what one before it made.",
			given: pipeline(patches + ", {step: two, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
				"[{name: db, patches: [{fromFieldPath: spec.color, toFieldPath: spec.forProvider.zone}]}, {name: other, patches: []}]}}"),
			policies: started + "Thing [spec.color]: platform-team crossplane -> Instance [spec.forProvider.zone] External [Update]\n",
			problems: "Composition things: step two: resource other: it has no base, and no step before makes it that can be followed: its kind is not known\n",
		},
		"MadeTwice": {
			reason: "One with a base makes it anew.",
			given: pipeline(patches + ", {step: two, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
				"[{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.color, toFieldPath: spec.forProvider.size}]}]}}"),
			policies: strings.Replace(started, "spec.size", "spec.color", 1),
		},
		"Resources": {
			reason: "Compositions without a pipeline are followed, too.",
			given: "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, " +
				"patchSets: [{name: s, patches: [{type: FromCompositeFieldPath, fromFieldPath: spec.size, toFieldPath: spec.forProvider.size, policy: {mergeOptions: {appendSlice: true}}}]}], " +
				"resources: [{base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{type: PatchSet, patchSetName: s}, " +
				"{type: ToCompositeFieldPath, fromFieldPath: status.atProvider.id, toFieldPath: spec.color}]}]}}",
			policies: started,
			problems: "Composition things: resource resources[0]: patches[1]: it writes spec.color of the XR, which nobody's change leads to: it is not followed\n",
		},
		"Nothing": {
			reason: "One that composes nothing is told.", given: pipeline(""), problems: "Composition things: it has neither a pipeline nor resources\n",
		},
		"NotDefined": {
			reason:   "What is composed may be an XR.",
			given:    pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: Item"), "forProvider", "parameters")),
			policies: "Thing [spec.size]: platform-team crossplane -> Item [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: it is not known whether Item.other.example.org is an XR, which composes something itself: " +
				"give its CustomResourceDefinition, or its CompositeResourceDefinition and Composition\n",
		},
		"NoComposition": {
			reason: "An XR without its Composition ends the way.",
			given: pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: Item"), "forProvider", "parameters")) +
				"\n---\n{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: items.other.example.org}, spec: " +
				"{group: other.example.org, names: {kind: Item}, claimNames: {kind: ItemClaim}}}",
			policies: "Thing [spec.size]: platform-team crossplane -> Item [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: Item is an XR, and its Composition is not there: what it composes is not followed\n",
		},
		"Claim": {
			reason: "So does a Claim.",
			given: pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: ItemClaim"), "forProvider", "parameters")) +
				"\n---\n{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: items.other.example.org}, spec: " +
				"{group: other.example.org, names: {kind: Item}, claimNames: {kind: ItemClaim}}}",
			policies: "Thing [spec.size]: platform-team crossplane -> ItemClaim [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: ItemClaim is a Claim: what its XR composes is not followed; suggest policies for that Composition, too\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Create = false
			m := materialOf(t, tc.given, thing)
			s, _ := suggest(t, m, o)

			if diff := cmp.Diff(tc.policies, short(s)); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, lines(texts(s.Problems))); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
