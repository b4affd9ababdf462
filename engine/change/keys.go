// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// listKeys says by which fields the elements of the list at a path are
// distinguished; none where that is not known.
type listKeys func(path Path) []string

// managedKeys returns the list-map keys that an object's managedFields show:
// the API server writes them by the schema, k:{"name":"x"} for an element of a
// list whose elements have the key name.
func managedKeys(obj map[string]any) listKeys {
	return func(path Path) []string {
		meta, _ := obj[metadata].(map[string]any)
		managers, _ := meta["managedFields"].([]any)

		for _, e := range managers {
			m, _ := e.(map[string]any)
			if m["subresource"] == "status" {
				continue
			}

			fields, _ := m["fieldsV1"].(map[string]any)
			if keys := managedKeysAt(fields, path); keys != nil {
				return keys
			}
		}

		return nil
	}
}

// keyPrefix starts the name of a list element with keys in fieldsV1, see
// sigs.k8s.io/structured-merge-diff fieldpath.SerializePathElement.
const keyPrefix = "k:"

func managedKeysAt(fields map[string]any, path Path) []string {
	if len(path) == 0 {
		return keyNames(fields)
	}

	if path[0].Type == fieldpath.SegmentField {
		under, _ := fields["f:"+path[0].Field].(map[string]any)
		if under == nil {
			return nil
		}

		return managedKeysAt(under, path[1:])
	}

	for _, name := range sortedNames(fields) { // All elements of a list have one schema.
		under, _ := fields[name].(map[string]any)
		if keys := managedKeysAt(under, path[1:]); keys != nil {
			return keys
		}
	}

	return nil
}

func keyNames(fields map[string]any) []string {
	for _, name := range sortedNames(fields) {
		var key map[string]any
		if err := json.Unmarshal([]byte(name[len(keyPrefix):]), &key); err != nil || len(key) == 0 {
			continue
		}

		names := make([]string, 0, len(key))
		for k := range key {
			names = append(names, k)
		}

		slices.Sort(names)

		return names
	}

	return nil
}

// sortedNames are the names of a list's elements with keys.
func sortedNames(fields map[string]any) []string {
	var names []string

	for name := range fields {
		if strings.HasPrefix(name, keyPrefix) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}
