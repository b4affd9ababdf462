// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// AddTrace puts new entries before those an object carries and keeps the
// newest. An entry of a field replaces an older one of the same field.
func AddTrace(have, add []v1alpha1.TraceEntry) []v1alpha1.TraceEntry {
	out := slices.Clone(add)

	for _, e := range have {
		if !slices.ContainsFunc(add, func(n v1alpha1.TraceEntry) bool { return n.Field == e.Field }) {
			out = append(out, e)
		}
	}

	return out[:min(len(out), v1alpha1.MaxTraceEntries)]
}

// ExtendTrace returns a path with one more hop, without touching the first.
func ExtendTrace(trace []v1alpha1.Hop, hop v1alpha1.Hop) []v1alpha1.Hop {
	return append(slices.Clone(trace), hop)
}
