// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestManyFieldsFitIntoPolicies(t *testing.T) {
	patches := make([]string, 0, 300)
	for i := range 150 {
		patches = append(patches, fmt.Sprintf("{fromFieldPath: spec.f%d, toFieldPath: spec.forProvider.size}", i),
			fmt.Sprintf("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.tags.t%d}", i))
	}

	s, _ := suggest(t, materialOf(t, composing(strings.Join(patches, ", ")), instance), options())

	for _, p := range s.Policies {
		if n := len(p.Policy.Spec.Match.Fields); n > 64 {
			t.Errorf("%s has %d fields", p.Policy.Name, n)
		}

		for _, a := range p.Policy.Spec.Allow {
			if len(a.Mutations) > 64 {
				t.Errorf("%s has %d mutations", p.Policy.Name, len(a.Mutations))
			}
		}
	}
}
