// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import "reflect"

// Equal compares decoded JSON, numbers by value.
func Equal(a, b any) bool {
	if sameScalar(a, b) {
		return true
	}

	switch x := a.(type) {
	case string:
		return false
	case map[string]any:
		y, ok := b.(map[string]any)

		return ok && equalMaps(x, y)
	case []any:
		y, ok := b.([]any)

		return ok && equalLists(x, y)
	default:
		return equalScalars(a, b)
	}
}

func equalMaps(x, y map[string]any) bool {
	if len(x) != len(y) {
		return false
	}

	if one(x, y) {
		return true
	}

	for k, v := range x {
		w, ok := y[k]
		if !ok || !Equal(v, w) {
			return false
		}
	}

	return true
}

// Shared reports whether two values are one and the same map or list: versions of an object share what none of them changes. Of
// other values it is false.
func Shared(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)

		return ok && one(x, y)
	case []any:
		y, ok := b.([]any)

		return ok && len(x) == len(y) && len(x) > 0 && &x[0] == &y[0]
	default:
		return false
	}
}

// one reports whether two maps are one and the same.
func one(x, y map[string]any) bool {
	return reflect.ValueOf(x).UnsafePointer() == reflect.ValueOf(y).UnsafePointer()
}

func equalLists(x, y []any) bool {
	if len(x) != len(y) {
		return false
	}

	if len(x) > 0 && &x[0] == &y[0] {
		return true
	}

	for i := range x {
		if !Equal(x[i], y[i]) {
			return false
		}
	}

	return true
}

func equalScalars(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}

	if a == b {
		return true
	}

	_, aint := a.(int64)
	if _, bint := b.(int64); aint && bint {
		return false // As floats, large ones that differ would be equal.
	}

	x, xok := float(a)
	y, yok := float(b)

	return xok && yok && x == y
}

func float(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}
