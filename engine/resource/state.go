// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// StateOf reads the state of an XR. False where it has none that is of now: the function has not
// reported yet, its pipeline failed, or the record is of another version.
func StateOf(xr *unstructured.Unstructured) (*v1alpha1.State, bool) {
	c, ok := ConditionOf(xr, v1alpha1.ConditionState)
	if !ok || c.Status == unknown {
		return nil, false
	}

	state := &v1alpha1.State{}
	if err := json.Unmarshal([]byte(c.Message), state); err != nil || state.V != v1alpha1.RecordVersion {
		return nil, false
	}

	return state, true
}

// RanAt is the CompositionRevision that the function ran for last, by its own record; empty where there is none. Crossplane may
// write an earlier record back, which is about an earlier revision.
func RanAt(xr *unstructured.Unstructured) string {
	state, _ := StateOf(xr)
	if state == nil {
		return ""
	}

	return cmp.Or(state.Ran, state.Revision)
}

// Revised reports whether an XR is composed by another CompositionRevision than when the function ran last.
func Revised(xr *unstructured.Unstructured) bool {
	was, is := RanAt(xr), RevisionOf(xr)

	return was != "" && is != "" && was != is
}

// unknown is the status of a condition that Crossplane has taken away.
const unknown = "Unknown"

// progressIn returns the progress in the state of an XR; false where there is none that is of now.
func progressIn(c Condition) (v1alpha1.Progress, bool) {
	if c.Message == "" || c.Status == unknown {
		return v1alpha1.Progress{}, false // As of each object but XRs: nothing is allocated.
	}

	return readProgress(c.Message)
}

// readProgress reads the progress in a state, and no further.
func readProgress(state string) (p v1alpha1.Progress, ok bool) {
	read := json.NewDecoder(strings.NewReader(state))
	version := 0

	if !reads(read, json.Delim('{'), "v") || read.Decode(&version) != nil || version != v1alpha1.RecordVersion ||
		!reads(read, "progress") || read.Decode(&p) != nil || p.Phase == "" {
		return v1alpha1.Progress{}, false
	}

	return p, true
}

// reads reports whether the next tokens are these.
func reads(from *json.Decoder, want ...json.Token) bool {
	return !slices.ContainsFunc(want, func(w json.Token) bool {
		t, err := from.Token()

		return err != nil || t != w
	})
}

// Behind reports whether a state is about an earlier generation of an XR than that which is there:
// the function has not run for it since, or Crossplane had it run once more with the XR that it
// had in its cache. It then says nothing of what is held by now, and not that something is not.
func Behind(xr *unstructured.Unstructured, state *v1alpha1.State) bool {
	return state.Progress.Generation > 0 && state.Progress.Generation < Generation(xr)
}

// FormatState writes a state within [v1alpha1.MaxStateBytes]. What does not fit is left out at the
// end: reasons first, then what was let pass, then what the function remembers of composed resources, and then whole changes.
// What was let pass and changes are counted.
func FormatState(list v1alpha1.State) string {
	text := stateText(list)
	if len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	list.Changes, list.Passed = withoutReasons(list.Changes), withoutReasons(list.Passed)
	if text = stateText(list); len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	list.PassedMore += len(list.Passed)
	list.Passed = nil

	if text = stateText(list); len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	list.Made, list.Again = "", nil
	if text = stateText(list); len(text) <= v1alpha1.MaxStateBytes {
		return text
	}

	all := list.Changes

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

func withoutReasons(list []v1alpha1.HeldChange) []v1alpha1.HeldChange {
	out := slices.Clone(list)
	for i := range out {
		out[i].Missing = ""
	}

	return out
}

// stateText is a state as JSON. It holds nothing that cannot be written so.
func stateText(list v1alpha1.State) string {
	list.V = v1alpha1.RecordVersion

	raw, err := json.Marshal(list)
	if err != nil {
		return "{}"
	}

	return string(raw)
}
