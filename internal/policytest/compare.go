// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Difference is something that is not as the scenario wants it.
type Difference struct {
	// Path of the field, such as findings[0].verdict of want.yaml, or
	// metadata.annotations[kausality.io/trace] of patched.yaml; with the file's name before it where
	// that is patched.yaml.
	Path string `json:"path"`
	// Want and Got as JSON; empty where there is nothing.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

// absent is what there is where there is nothing.
type absent struct{}

// under is what a mapping has under a key.
func under(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}

	return absent{}
}

// comparison compares what is wanted with what there is.
type comparison struct {
	// exact is true where what is not wanted is not to be there.
	exact bool
	out   []Difference
}

// compare compares what is at a path. Of a mapping what is given is compared, of a list all of
// it, in order. An empty mapping or list is equal to an empty one, and so is what is not there to
// what is empty.
func (c *comparison) compare(at string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok && len(want) > 0 {
			c.mappings(at, want, got)

			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			c.lists(at, want, got)

			return
		}
	}

	if empty(want) && empty(got) || reflect.DeepEqual(want, got) {
		return
	}

	c.differ(at, want, got)
}

func (c *comparison) mappings(at string, want, got map[string]any) {
	keys := slices.Collect(maps.Keys(want))
	if c.exact {
		for key := range got {
			if _, ok := want[key]; !ok {
				keys = append(keys, key)
			}
		}
	}

	slices.Sort(keys)

	for _, key := range keys {
		c.compare(step(at, key), under(want, key), under(got, key))
	}
}

func (c *comparison) lists(at string, want, got []any) {
	for i := range max(len(want), len(got)) {
		at := fmt.Sprintf("%s[%d]", at, i)

		switch {
		case i >= len(want):
			c.out = append(c.out, Difference{Path: at, Got: text(got[i])})
		case i >= len(got):
			c.out = append(c.out, Difference{Path: at, Want: text(want[i])})
		default:
			c.compare(at, want[i], got[i])
		}
	}
}

func (c *comparison) differ(at string, want, got any) {
	c.out = append(c.out, Difference{Path: at, Want: text(want), Got: text(got)})
}

// empty reports whether a value says nothing.
func empty(v any) bool {
	switch v := v.(type) {
	case absent:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return v == "" || v == false
	}
}

// text is a value on one line; empty where there is none.
func text(v any) string {
	if v == (absent{}) {
		return ""
	}

	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}

	return string(raw)
}

// step is the path of what is below a key.
func step(at, key string) string {
	if at != "" && !plain(key) {
		return at + "[" + key + "]"
	}

	return join(at, key)
}

// plain reports whether a key is a word.
func plain(key string) bool {
	return !slices.ContainsFunc([]rune(key), func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// as is what there is in the shape of what is wanted: with the fields that this gives.
func as(want, got any) any {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			got = map[string]any{}
		}

		if len(want) == 0 {
			return got
		}

		out := map[string]any{}
		for key, value := range want {
			out[key] = as(value, under(got, key))
		}

		return out
	case []any:
		got, ok := got.([]any)
		if !ok {
			return []any{}
		}

		out := slices.Clone(got)
		for i := range min(len(want), len(got)) {
			out[i] = as(want[i], got[i])
		}

		return out
	case string:
		if got == (absent{}) {
			return ""
		}
	case bool:
		if got == (absent{}) {
			return false
		}
	}

	if got == (absent{}) {
		return nil
	}

	return got
}
