// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// path is the hash of a path in a wish, of 48 bits.
type path uint64

const pathMask = 1<<(8*pathSize) - 1

// root is the path of an object.
const root path = 0

// under is the path of an entry of a map, or an element of a list.
func (p path) under(segment string) path {
	const hex = 16

	var start [hex + 1]byte

	sum := fnv64(fnv64(offset64, append(strconv.AppendUint(start[:0], uint64(p), hex), '/')), segment)

	return path((sum>>(8*pathSize) ^ sum) & pathMask)
}

// FNV-1a of 64 bits, without the allocation of a hash.Hash64: there are as many of
// them in a run as there are fields.
const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

// fnv64 goes on with a hash.
func fnv64[T string | []byte](sum uint64, text T) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime64
	}

	return sum
}

// Hash is a hash of decoded JSON.
func Hash(v any) uint64 { return hashOf(v) }

// hashOf is the hash of a leaf: a scalar, a list of scalars, or what is empty.
func hashOf(v any) uint64 {
	if sum, ok := hashOfScalar(v); ok {
		return sum
	}

	return hashByJSON(v)
}

func hashByJSON(v any) uint64 {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = fmt.Append(nil, v) // Not of JSON, and of no API server.
	}

	return fnv64(offset64, raw)
}

// hashOfScalar is the same hash of most scalars, without their JSON in between; false
// where JSON writes a value in another way than it is.
func hashOfScalar(v any) (uint64, bool) {
	switch t := v.(type) {
	case string:
		if !verbatim(t) {
			return 0, false
		}

		return fnv64(fnv64(fnv64(offset64, `"`), t), `"`), true
	case int64:
		const decimal, digits = 10, 20

		var text [digits]byte

		return fnv64(offset64, strconv.AppendInt(text[:0], t, decimal)), true
	case bool:
		return fnv64(offset64, strconv.FormatBool(t)), true
	default:
		return 0, false
	}
}

// verbatim reports whether JSON writes all characters of a text as they are.
func verbatim(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}

	return true
}

// leaf reports whether a wished value is one leaf: what is no map, and no list of
// maps, or empty.
func leaf(v any) bool {
	switch t := v.(type) {
	case map[string]any:
		return len(t) == 0
	case []any:
		return !ofMaps(t)
	default:
		return true
	}
}

// ofMaps reports whether a list has elements, and all are maps.
func ofMaps(list []any) bool {
	for _, e := range list {
		if _, ok := e.(map[string]any); !ok {
			return false
		}
	}

	return len(list) > 0
}

// identifiers are fields that distinguish the elements of a list where all have
// them, each another.
func identifiers() []string {
	return []string{
		"name", "key", "type", "mountPath", "devicePath", "containerPort", "port", "ip", "uid", "topologyKey", "host", "id",
	}
}

// segments name the elements of a list of maps: by the first identifier that
// distinguishes them, or else by their places.
func segments(list []any) []string {
	if len(list) == 0 {
		return nil
	}

	for _, id := range identifiers() {
		if out, ok := segmentsBy(list, id); ok {
			return out
		}
	}

	out := make([]string, len(list))
	for i := range list {
		out[i] = "[" + strconv.Itoa(i) + "]"
	}

	return out
}

// aliases are all names that [segments] may have for the element at a place.
func aliases(element map[string]any, place int) []string {
	if place < 0 {
		return nil
	}

	out := []string{"[" + strconv.Itoa(place) + "]"}

	for _, id := range identifiers() {
		if v, ok := element[id]; ok && v != nil && leaf(v) {
			out = append(out, segmentOf(id, v))
		}
	}

	return out
}

// segmentOf names an element by one of its fields.
func segmentOf(id string, v any) string {
	if s, ok := v.(string); ok {
		return "[" + id + "=" + s + "]"
	}

	return fmt.Sprintf("[%s=%v]", id, v)
}

func segmentsBy(list []any, id string) ([]string, bool) {
	if first, _ := list[0].(map[string]any); first[id] == nil {
		return nil, false
	}

	out, seen := make([]string, len(list)), make(map[string]bool, len(list))

	for i, e := range list {
		m, _ := e.(map[string]any)

		v, ok := m[id]
		if !ok || v == nil || !leaf(v) {
			return nil, false
		}

		out[i] = segmentOf(id, v)
		if seen[out[i]] {
			return nil, false
		}

		seen[out[i]] = true
	}

	return out, true
}
