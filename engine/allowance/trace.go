// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// AddTrace puts new entries before those an object carries and keeps the
// newest, rather than repairs. An entry of a field replaces an older one of the same field.
func AddTrace(have, add []v1alpha1.TraceEntry) []v1alpha1.TraceEntry {
	out := slices.Concat(add, slices.DeleteFunc(slices.Clone(have), func(e v1alpha1.TraceEntry) bool {
		return slices.ContainsFunc(add, func(n v1alpha1.TraceEntry) bool { return n.Field == e.Field })
	}))

	for n := len(out) - 1; n >= 0 && len(out) > v1alpha1.MaxTraceEntries; n-- {
		if out[n].Repaired != nil { // What it restored says who asked for it.
			out = slices.Delete(out, n, n+1)
		}
	}

	return slices.Clip(out[:min(len(out), v1alpha1.MaxTraceEntries)])
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
