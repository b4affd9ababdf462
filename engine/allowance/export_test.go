// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// For tests outside the package, which alone may import the corpus.

// ReadPlain is readPlain.
func ReadPlain(text string, out any) bool { return readPlain(text, out) }

// WritePlain is writePlain.
func WritePlain(v any) (string, bool) { return writePlain(v) }

// Unknown returns where a value keeps what this version does not know.
func Unknown(v any) []*v1alpha1.Unknown {
	entries := entriesOf(v)
	out := make([]*v1alpha1.Unknown, 0, len(entries))

	for _, e := range entries {
		if e.rest != nil {
			out = append(out, e.rest)
		}
	}

	return out
}
