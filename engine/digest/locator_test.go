// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package digest_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
)

func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()

	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

// digestsOf are the digests of the changes of an object, by field and old value.
func digestsOf(t *testing.T, was, is string) map[string]string {
	t.Helper()

	oldObj, newObj := objectOf(t, was), objectOf(t, is)
	l := change.NewLocator(oldObj, newObj, digest.OfLists)
	out := map[string]string{}

	for _, c := range change.Between(oldObj, newObj) {
		d := base()
		d.Elements, d.From, d.To = l.Elements(c), c.From, c.To

		out[digest.Of(d)] = c.Field
	}

	return out
}

// TestWhatGoesWithAnElementIsOfThatElement and not of the one that takes its place.
func TestWhatGoesWithAnElementIsOfThatElement(t *testing.T) {
	const (
		both  = `{spec: {groups: [{name: a, rules: [{name: r, port: "80"}]}, {name: b, rules: [{name: r, port: "80"}]}]}}`
		onlyB = `{spec: {groups: [{name: b, rules: [{name: r, port: "80"}]}]}}`
		bare  = `{spec: {groups: [{name: a, rules: [{name: r, port: "80"}]}, {name: b, rules: []}]}}`
	)

	withoutA, ofB := digestsOf(t, both, onlyB), digestsOf(t, both, bare)

	for d, field := range withoutA {
		if other, ok := ofB[d]; ok {
			t.Errorf("%s goes with group a, and has the digest of %s of group b", field, other)
		}
	}

	if len(withoutA) < 2 || len(ofB) == 0 {
		t.Errorf("changes: %v, %v", withoutA, ofB)
	}
}
