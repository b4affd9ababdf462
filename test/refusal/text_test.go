// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// texts are the places of all kinds where text is, as place names them, in order.
func (s server) texts() []string {
	var out []string

	for name, k := range s {
		for path, at := range nodes(k.schema.Properties["spec"], "spec") {
			if at.Type == "string" {
				out = append(out, place(name, path))
			}
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// texts are the texts below a value of an object, by their paths, each with what sets it in such
// an object.
func texts(v any, at string) iter.Seq2[string, func(object map[string]any, text string)] {
	return func(yield func(string, func(map[string]any, string)) bool) {
		_ = eachText(v, at, nil, func(path string, steps []any) bool {
			return yield(path, func(object map[string]any, text string) { set(object, steps, text) })
		})
	}
}

func eachText(v any, at string, steps []any, yield func(string, []any) bool) bool {
	switch v := v.(type) {
	case string:
		return !strings.HasPrefix(at, "spec") || yield(at, slices.Clone(steps))
	case map[string]any:
		for key, below := range v {
			if !eachText(below, strings.TrimPrefix(at+"."+key, "."), append(steps, key), yield) {
				return false
			}
		}
	case []any:
		for i, below := range v {
			if !eachText(below, fmt.Sprintf("%s[%d]", at, i), append(steps, i), yield) {
				return false
			}
		}
	}

	return true
}

// set sets what some steps of an object lead to.
func set(v any, steps []any, text string) {
	switch in := v.(type) {
	case map[string]any:
		key, _ := steps[0].(string)
		if len(steps) == 1 {
			in[key] = text
		} else {
			set(in[key], steps[1:], text)
		}
	case []any:
		i, _ := steps[0].(int)
		if len(steps) == 1 {
			in[i] = text
		} else {
			set(in[i], steps[1:], text)
		}
	}
}
