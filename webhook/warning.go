// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"unicode"
)

// Limits of warnings. The API server cuts each at 256 characters once all of a
// response exceed 4096, and drops those it cannot put into a header.
//
// Source: k8s.io/apiserver pkg/endpoints/filters/warning.go.
const (
	maxWarnings     = 8
	maxWarningRunes = 480
)

// clip makes warnings few and short enough to arrive whole.
func clip(warnings []string) []string {
	out := make([]string, 0, min(len(warnings), maxWarnings))

	for i, w := range warnings {
		if i == maxWarnings-1 && len(warnings) > maxWarnings {
			return append(out, fmt.Sprintf("and %d more like these", len(warnings)-i))
		}

		out = append(out, cut(w, maxWarningRunes))
	}

	return out
}

// cut makes a text one printable line of so many characters at most.
func cut(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(s, "?"))

	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}

	return s
}
