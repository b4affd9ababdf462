// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// StateOf reads the list of an XR. False where it has none that is of now: the function has not
// reported yet, or its pipeline failed.
func StateOf(xr *unstructured.Unstructured) (*v1alpha1.State, bool) {
	c, ok := ConditionOf(xr, v1alpha1.ConditionState)
	if !ok || c.Status == "Unknown" {
		return nil, false
	}

	list := &v1alpha1.State{}
	if err := json.Unmarshal([]byte(c.Message), list); err != nil {
		return nil, false
	}

	return list, true
}

// Behind reports whether a list is about an earlier generation of an XR than that which is there:
// the function has not run for it since, or Crossplane had it run once more with the XR that it
// had in its cache. It then says nothing of what is held by now, and not that something is not.
func Behind(xr *unstructured.Unstructured, list *v1alpha1.State) bool {
	return list.Generation > 0 && list.Generation < Generation(xr)
}

// FormatState writes a list within [v1alpha1.MaxStateBytes]. What does not fit is left out at the
// end, and counted: reasons first, then whole changes.
func FormatState(list v1alpha1.State) string {
	text := stateText(list)
	if len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	changes := make([]v1alpha1.HeldEntry, len(list.Changes))
	for i, e := range list.Changes {
		e.Missing = ""
		changes[i] = e
	}

	all := changes
	list.Changes = all

	if text = stateText(list); len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	// The most that fit. Fewer changes are never longer, but for the digits of their count.
	more, fits, not := list.More, 0, len(all)
	for fits+1 < not {
		n := (fits + not) / 2 //nolint:mnd // Their middle.

		list.Changes, list.More = all[:n], more+len(all)-n
		if len(stateText(list)) <= v1alpha1.MaxStateBytes {
			fits = n
		} else {
			not = n
		}
	}

	list.Changes, list.More = all[:fits], more+len(all)-fits

	return stateText(list)
}

// stateText is a list as JSON. It holds nothing that cannot be written so.
func stateText(list v1alpha1.State) string {
	raw, err := json.Marshal(list)
	if err != nil {
		return "{}"
	}

	return string(raw)
}
