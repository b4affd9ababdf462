// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Alike are those of some names that another one was probably meant to be.
func Alike(name string, names []string) []string {
	out := make([]string, 0, 1)
	least := max(1, len(name)/3)

	for _, n := range names {
		switch d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); {
		case d < least:
			out, least = append(out[:0], n), d
		case d == least:
			out = append(out, n)
		}
	}

	return out
}
