// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Value returns the value below a path of map keys, and whether it is there.
func Value(obj map[string]any, path ...string) (any, bool) {
	var at any = obj

	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}

		if at, ok = m[key]; !ok {
			return nil, false
		}
	}

	return at, true
}

// Keys returns the keys of an object, sorted.
func Keys(obj map[string]any) []string {
	if len(obj) == 0 {
		return nil
	}

	out := make([]string, 0, len(obj))
	for key := range obj {
		out = append(out, key)
	}

	slices.Sort(out)

	return out
}

// Map returns the map below a path of map keys, nil if there is none.
func Map(obj map[string]any, path ...string) map[string]any {
	v, _ := Value(obj, path...)
	m, _ := v.(map[string]any)

	return m
}

// List returns the list below a path of map keys, nil if there is none.
func List(obj map[string]any, path ...string) []any {
	v, _ := Value(obj, path...)
	l, _ := v.([]any)

	return l
}

// String returns the string below a path of map keys, empty if there is none.
func String(obj map[string]any, path ...string) string {
	v, _ := Value(obj, path...)
	s, _ := v.(string)

	return s
}

// Int returns the whole number below a path of map keys, 0 if there is none.
// Unlike unstructured's accessors it takes float64 too.
func Int(obj map[string]any, path ...string) int64 {
	v, _ := Value(obj, path...)

	switch n := v.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	default:
		return 0
	}
}

// Strings returns the list of strings below a path of map keys; other elements
// are left out.
func Strings(obj map[string]any, path ...string) []string {
	list := List(obj, path...)
	if list == nil {
		return nil
	}

	out := make([]string, 0, len(list))

	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}

	return out
}

// Values returns strings as a list of an object has them; it is never nil.
func Values(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}

	return out
}

// Generation returns metadata.generation.
func Generation(u *unstructured.Unstructured) int64 {
	return Int(u.Object, "metadata", "generation")
}

// Name returns metadata.name, or metadata.generateName while the API server
// has not made a name yet.
func Name(u *unstructured.Unstructured) string {
	if n := u.GetName(); n != "" {
		return n
	}

	return u.GetGenerateName()
}

// Argument is the object as kubectl takes it at the command line: KIND.GROUP/NAME,
// with its namespace where it has one.
func Argument(u *unstructured.Unstructured) string {
	out := u.GroupVersionKind().GroupKind().String() + "/" + Name(u)
	if ns := u.GetNamespace(); ns != "" {
		out += " -n " + ns
	}

	return out
}

// Annotation returns an annotation, empty if there is none.
func Annotation(u *unstructured.Unstructured, key string) string {
	return String(u.Object, "metadata", "annotations", key)
}

// Deleting reports whether the object has a deletion timestamp.
func Deleting(u *unstructured.Unstructured) bool {
	return String(u.Object, "metadata", "deletionTimestamp") != ""
}
