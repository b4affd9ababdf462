// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal reads what examples/invalid says of refusals. Its tests know, without an
// API server, what is refused and why, and that each refusal there is has an example.
package refusal

import (
	"bytes"
	"strings"
)

// Stated is the reason in the head of a file of examples/invalid, in one line: what follows
// "Refused:" in its comment. Empty where none is stated.
func Stated(raw []byte) string {
	var out []string

	for line := range bytes.Lines(raw) {
		text, ok := strings.CutPrefix(string(line), "#")
		if !ok {
			break
		}

		if reason, ok := strings.CutPrefix(strings.TrimSpace(text), "Refused:"); ok || out != nil {
			if !ok {
				reason = text
			}

			out = append(out, strings.TrimSpace(reason))
		}
	}

	return strings.Join(out, " ")
}
