// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Text writes a value for a person: a string as it is, anything else as
// compact JSON, cut to at most limit bytes. Nothing is the empty text.
func Text(v any, limit int) string {
	if v == nil {
		return ""
	}

	s, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}

		s = string(raw)
	}

	if len(s) <= limit {
		return s
	}

	const dots = "..."

	cut := max(0, limit-len(dots))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}

	return s[:cut] + dots
}
