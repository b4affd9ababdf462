// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/kausality-io/kausality-crossplane/internal/audit"

// outside checks for managed resources whose external object is not what their spec
// says.
func outside(s *State) []Finding {
	var out []Finding

	for _, u := range s.Managed {
		for _, f := range audit.Inside(u, s.Now) {
			out = append(out, audited(Warning, u, f))
		}
	}

	return out
}
