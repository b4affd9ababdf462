// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

var (
	// errMasked stands for an error that may quote what is hidden.
	errMasked = errors.New("the reason is not shown, for it may quote a credential")
	// errKey and errIndex are what errors say that quote a key, or an index.
	errKey   = errors.New("no such key")
	errIndex = errors.New("index out of bounds")
)

// Error returns what may be shown of an expression's error about objects. It may
// quote any of their values, whole, in part or decoded: where they hold a
// credential, only errors that quote none by their nature are shown, and what
// others say before they quote one.
func Error(err error, objects ...map[string]any) error {
	if !slices.ContainsFunc(objects, func(object map[string]any) bool { return hides(object, shown) }) {
		return err
	}

	for _, start := range [...]string{
		"no such field", "no such attribute", "no such overload", "division by ", "modulus by ", "operation cancelled", "operation interrupted",
	} {
		if strings.HasPrefix(err.Error(), start) {
			return err
		}
	}

	// What is looked up may itself be a value: {'a': 1}[object.spec.password].
	for _, start := range [...]error{errKey, errIndex} {
		if strings.HasPrefix(err.Error(), start.Error()) {
			return start
		}
	}

	return errMasked
}

// WithoutApplied is an object without what kubectl stores of what was applied, in
// which there may be anything, and which is there of most objects; false where there
// is none of that. It shares the rest with the object.
func WithoutApplied(object map[string]any) (map[string]any, bool) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)

	if _, ok := annotations[LastApplied]; !ok {
		return object, false
	}

	object, metadata, annotations = maps.Clone(object), maps.Clone(metadata), maps.Clone(annotations)
	delete(annotations, LastApplied)

	object["metadata"], metadata["annotations"] = metadata, annotations

	return object, true
}
