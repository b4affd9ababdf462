// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

// Find returns a function that finds the first element of a list that is equal to a
// value, or -1. Texts, of which there may be many, it finds without reading each.
func Find(list []any) func(v any) int {
	texts := make(map[string]int, len(list))

	var others []int

	for i, e := range list {
		text, ok := e.(string)
		if !ok {
			others = append(others, i)
		} else if _, known := texts[text]; !known {
			texts[text] = i
		}
	}

	return func(v any) int {
		if text, ok := v.(string); ok {
			if i, ok := texts[text]; ok {
				return i
			}

			return -1
		}

		for _, i := range others {
			if Equal(list[i], v) {
				return i
			}
		}

		return -1
	}
}
