// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// AddTrace puts new entries before those an object carries and keeps the
// newest. An entry of a field replaces an older one of the same field. The newest
// entry that shows the use of an allowance stays, for as long as the parent
// carries that: without it the allowance could be used once more.
func AddTrace(have, add []v1alpha1.TraceEntry, uses ...v1alpha1.Allowance) []v1alpha1.TraceEntry {
	all := slices.Concat(add, have)
	stays := make([]bool, len(all))
	rest := v1alpha1.MaxTraceEntries

	stay := func(i int) {
		if i >= 0 && i < len(all) && !stays[i] {
			stays[i] = true
			rest--
		}
	}

	stay(0)

	for _, a := range uses {
		stay(slices.IndexFunc(all, func(e v1alpha1.TraceEntry) bool { return Used([]v1alpha1.TraceEntry{e}, a) }))
	}

	for i, e := range all {
		replaced := i >= len(add) && slices.ContainsFunc(add, func(n v1alpha1.TraceEntry) bool { return n.Field == e.Field })
		if rest > 0 && !replaced {
			stay(i)
		}
	}

	out := make([]v1alpha1.TraceEntry, 0, v1alpha1.MaxTraceEntries)

	for i, e := range all {
		if stays[i] {
			out = append(out, e)
		}
	}

	return out
}

// MoveTrace returns a path that an object in one namespace carries as one in another
// does; empty stands for none. It does not touch the first.
func MoveTrace(trace []v1alpha1.Hop, from, to string) []v1alpha1.Hop {
	if from == to || len(trace) == 0 {
		return trace
	}

	out := slices.Clone(trace)

	for i := range out {
		switch ns := out[i].Namespace; {
		case ns == nil:
			out[i].Namespace = &from
		case *ns == to:
			out[i].Namespace = nil
		}
	}

	return out
}

// ExtendTrace returns a path with one more hop, without touching the first.
func ExtendTrace(trace []v1alpha1.Hop, hop v1alpha1.Hop) []v1alpha1.Hop {
	return append(slices.Clone(trace), hop)
}
