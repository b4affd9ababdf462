// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Project returns what a manager has to apply so that the live object becomes
// result: the fields of desired at their value in result, and those it owns
// and that result keeps. What result lacks is left out. Nothing is modified.
func Project(desired, live, result map[string]any, owned *fieldpath.Set) map[string]any {
	out := map[string]any{}

	for k, d := range desired {
		if r, ok := result[k]; ok {
			out[k] = projectValue(d, live[k], r, below(owned, element(k)))
		}
	}

	for k, r := range result {
		if _, ok := desired[k]; ok {
			continue
		}

		if kept, ok := keepOwned(live[k], r, element(k), owned); ok {
			out[k] = kept
		}
	}

	return out
}

func projectValue(desired, live, result any, owned *fieldpath.Set) any {
	d, dok := desired.(map[string]any)
	r, rok := result.(map[string]any)

	if !dok || !rok {
		if _, list := desired.([]any); list && change.Equal(result, mergeValues(live, desired, owned)) {
			return desired // Nothing in it is kept back: others' elements stay theirs.
		}

		return result
	}

	l, _ := live.(map[string]any)

	return Project(d, l, r, owned)
}

// keepOwned returns the owned part of a value that desired does not mention.
func keepOwned(live, result any, pe fieldpath.PathElement, owned *fieldpath.Set) (any, bool) {
	self, under := owned.Members.Has(pe), below(owned, pe)
	if live == nil || !self && under.Empty() {
		return nil, false
	}

	r, ok := result.(map[string]any)
	if !ok || under.Empty() {
		return result, true
	}

	l, _ := live.(map[string]any)
	out := Project(nil, l, r, under)

	return out, len(out) > 0 || self
}

// Extract returns the part of a live object that a manager owns: applying it
// changes nothing.
func Extract(live map[string]any, owned *fieldpath.Set) map[string]any {
	return Project(nil, live, live, owned)
}
