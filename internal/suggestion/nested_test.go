// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeveralCompositionsOfANestedXR(t *testing.T) {
	const outer = `{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing},
  resources: [{name: item, base: {apiVersion: example.org/v1, kind: Item, spec: {REF}}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.size}]}]}}`

	inner := func(name, field string) string {
		return "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: " + name + "}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Item}, " +
			"resources: [{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider." + field + "}]}]}}"
	}

	const first = "Thing [spec.size]: platform-team crossplane -> Item [spec.size]\n"

	for name, tc := range map[string]struct{ reason, ref, policies, problems string }{
		"Unknown": {
			reason: "Which one is taken cannot be known.", policies: first,
			problems: "Composition things: resource item: Item is an XR, and there are 2 Compositions for it: which one is taken is not known, and what it " +
				"composes is not followed; give one of them, or suggest policies for each\n",
		},
		"Named": {
			reason: "The base may say so.", ref: "crossplane: {compositionRef: {name: b}}",
			policies: first + "Item [spec.size]: crossplane -> Instance [spec.forProvider.large] External [Update]\n",
		},
		"Gone": {
			reason: "The one that it names may not be there.", ref: "compositionRef: {name: c}", policies: first,
			problems: "Composition things: resource item: Item is an XR, and its Composition c is not there: what it composes is not followed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Create = false
			s, _ := suggest(t, materialOf(t, strings.Replace(outer, "REF", tc.ref, 1), inner("a", "small"), inner("b", "large"), thing), o)

			if diff := cmp.Diff(tc.policies, short(s)); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, lines(texts(s.Problems))); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnXRThatComposesItselfIsFollowedOnce(t *testing.T) {
	o := options()
	o.Create = false
	s, _ := suggest(t, materialOf(t, `{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing},
  resources: [{name: again, base: {apiVersion: example.org/v1, kind: Thing}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.size}]}]}}`, thing), o)

	const want = "Composition things: resource again: it is an XR with the same Composition things again, which is followed once\n"
	if diff := cmp.Diff(want, lines(texts(s.Problems))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
