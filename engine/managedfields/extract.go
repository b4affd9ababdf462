// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Extract returns the part of a live object, or of a map in it, that a manager
// applies: to apply it changes nothing.
func Extract(live map[string]any, fields Fields) map[string]any {
	out := map[string]any{}

	for k, v := range live {
		if part, ok := ExtractValue(v, Field(k), fields); ok {
			out[k] = part
		}
	}

	return out
}

// ExtractValue returns the part of the value at an element that a manager
// applies; false for none.
func ExtractValue(live any, at fieldpath.PathElement, fields Fields) (any, bool) {
	self, under := fields.Has(at), fields.Below(at)
	if under.none() {
		return live, self
	}

	switch t := live.(type) {
	case map[string]any:
		out := Extract(t, under)

		return out, len(out) > 0 || self
	case []any:
		out := extractList(t, under)

		return out, len(out) > 0 || self
	default:
		return live, self
	}
}

// extractList leaves out of a list the elements that others have: applied once,
// they would be this manager's to remove.
func extractList(live []any, fields Fields) []any {
	keys := fields.Keys()
	if len(keys) == 0 {
		return slices.DeleteFunc(slices.Clone(live), func(e any) bool { return !fields.Own.Members.Has(Value(e)) })
	}

	out := make([]any, 0, len(live))

	for _, e := range live {
		if part, ok := ExtractValue(e, Element(e, keys), fields); ok {
			out = append(out, WithKeys(part, e, keys))
		}
	}

	return out
}

// WithKeys puts the key fields of a list's element into the part of it that is
// applied, which is modified.
func WithKeys(part, e any, keys []string) any {
	p, pok := part.(map[string]any)
	m, mok := e.(map[string]any)

	if !pok || !mok {
		return part
	}

	for _, k := range keys {
		if v, ok := m[k]; ok {
			p[k] = v
		}
	}

	return p
}
