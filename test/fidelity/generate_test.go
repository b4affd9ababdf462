// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"embed"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

// Marks of templates; testdata/pod.yaml explains them.
const (
	markOptional = "~"
	markChoice   = "|"
	markInclude  = "@"
)

// templates are the kinds of objects, by the names of their files.
func templates(t *testing.T) map[string]map[string]any {
	t.Helper()

	entries, err := testdata.ReadDir("testdata/kinds")
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]map[string]any{}
	for _, e := range entries {
		out[strings.TrimSuffix(e.Name(), ".yaml")] = readYAML(t, path.Join("kinds", e.Name()))
	}

	return out
}

func readYAML(t *testing.T, name string) map[string]any {
	t.Helper()

	raw, err := testdata.ReadFile(path.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]any{}
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatalf("cannot read %s: %v", name, err)
	}

	return out
}

// included fills in the parts that templates share.
func included(t *testing.T, v any) any {
	t.Helper()

	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}

		for key, e := range v {
			if key == markInclude {
				maps.Copy(out, readYAML(t, asText(e)))
			} else {
				out[key] = included(t, e)
			}
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = included(t, e)
		}

		return out
	default:
		return v
	}
}

// generate makes an object of a template: what may be left out is, by chance.
func generate(rng *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return generateMap(rng, v)
	case []any:
		out := []any{}

		for _, e := range v {
			if m, ok := e.(map[string]any); ok && m[markOptional] == true && rng.IntN(2) == 0 {
				continue
			}

			out = append(out, generate(rng, e))
		}

		return out
	default:
		return v
	}
}

func generateMap(rng *rand.Rand, m map[string]any) map[string]any {
	out := map[string]any{}

	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == markOptional {
			continue
		}

		v := m[key]
		name, choice := strings.CutSuffix(key, markChoice)
		name, optional := strings.CutSuffix(name, markOptional)

		if optional && rng.IntN(2) == 0 {
			continue
		}

		if options, ok := v.([]any); ok && choice {
			v = options[rng.IntN(len(options))]
		}

		out[name] = generate(rng, v)
	}

	return out
}
