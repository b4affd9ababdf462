// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"encoding/json"
	"slices"
	"strings"
)

// Hide returns what stands for a value that is hidden. It is given the fields that lead
// to the value, without the indices of lists; not to be kept or modified.
type Hide func(at []string, v any) string

// Object returns a copy of an object in which all that is hidden is replaced, by what hide
// makes of each value. Peers are other versions of it: what is hidden of one of them is
// hidden of the object. Names of fields are shown, but where managedFields have the
// values of a list in the place of names. The object is not modified; nil stays nil.
func Object(object map[string]any, hide Hide, peers ...map[string]any) map[string]any {
	if object == nil {
		return nil
	}

	others := make([]any, len(peers))
	for i, p := range peers {
		others[i] = p
	}

	r := replacement{hide: hide}

	return r.fields(object, shown, others)
}

// replacement replaces what is hidden.
type replacement struct {
	hide Hide
	// at are the fields that lead to where it is.
	at []string
}

func (r *replacement) fields(m map[string]any, how hidden, peers []any) map[string]any {
	out := make(map[string]any, len(m))

	for key, v := range m {
		below, others := below(how, m, key), make([]any, 0, len(peers))

		for _, p := range peers {
			if peer, ok := p.(map[string]any); ok {
				below, others = max(below, belowPeer(how, peer, key)), append(others, peer[key])
			}
		}

		r.at = append(r.at, key)

		if fields, ok := v.(map[string]any); ok && key == "fieldsV1" && slices.Contains(r.at, "managedFields") {
			out[key] = (&replacement{hide: r.hide}).managed(fields, shown)
		} else {
			out[key] = r.value(v, below, others)
		}

		r.at = r.at[:len(r.at)-1]
	}

	return out
}

// belowPeer is what another version hides of a field.
func belowPeer(how hidden, peer map[string]any, field string) hidden {
	if len(peer) == 0 {
		return shown
	}

	return below(how, peer, field)
}

func (r *replacement) value(v any, how hidden, peers []any) any {
	switch t := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return r.fields(t, how, peers)
	case []any:
		out := make([]any, len(t))

		for i, e := range t {
			var others []any

			for _, p := range peers {
				if list, ok := p.([]any); ok && i < len(list) {
					others = append(others, list[i])
				}
			}

			out[i] = r.value(e, how, others)
		}

		return out
	default:
		if hidesPlain(v, how) {
			return r.hide(r.at, v)
		}

		return v
	}
}

// Prefixes of names in fieldsV1: of a field, of an element of a list by its value, and by
// its keys.
//
// Source: sigs.k8s.io/structured-merge-diff fieldpath/serialize-pe.go.
const (
	prefixField = "f:"
	prefixValue = "v:"
	prefixKeys  = "k:"
)

// managed replaces the values that names of fieldsV1 quote.
func (r *replacement) managed(fields map[string]any, how hidden) map[string]any {
	out := make(map[string]any, len(fields))

	for name, v := range fields {
		shown, under, depth := name, how, len(r.at)

		switch {
		case strings.HasPrefix(name, prefixField):
			field := strings.TrimPrefix(name, prefixField)
			under = below(how, nil, field)
			r.at = append(r.at, field)
		case strings.HasPrefix(name, prefixValue), strings.HasPrefix(name, prefixKeys):
			shown = name[:len(prefixValue)] + r.quoted(name[len(prefixValue):], how)
		}

		if m, ok := v.(map[string]any); ok {
			out[shown] = r.managed(m, under)
		} else {
			out[shown] = v
		}

		r.at = r.at[:depth]
	}

	return out
}

// quoted is what is shown of a value that a name quotes as JSON.
func (r *replacement) quoted(text string, how hidden) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil || !hides(v, how) {
		return text
	}

	raw, err := json.Marshal(r.value(v, how, nil))
	if err != nil {
		return text // It was JSON before.
	}

	return string(raw)
}
