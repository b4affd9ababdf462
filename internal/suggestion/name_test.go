// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

func TestNamesAreValidUniqueAndAlwaysTheSame(t *testing.T) {
	long := strings.Repeat("veryLongName", 30)
	m := materialOf(t, composing(strings.Join([]string{
		"{fromFieldPath: spec.a.b, toFieldPath: spec.forProvider.tags.x}",
		"{fromFieldPath: spec.aB, toFieldPath: spec.forProvider.tags.y}",
		`{fromFieldPath: "spec.a[b]", toFieldPath: spec.forProvider.tags.z}`,
		"{fromFieldPath: spec.ab, toFieldPath: spec.forProvider.tags.q}",
		"{fromFieldPath: spec." + long + ", toFieldPath: spec.forProvider.tags.l}",
	}, ", ")), thing, instance)
	o := options()
	o.Prefix = "team-a."

	names := map[string]bool{}

	for range 2 {
		s, err := suggestion.Suggest(m, o)
		if err != nil {
			t.Fatal(err)
		}

		for i, p := range s.Policies {
			name := p.Policy.Name
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || !strings.HasPrefix(name, "team-a.things-thing-") {
				t.Errorf("%q: %v", name, errs)
			}

			if names[name] && i < len(names) && len(names) != len(s.Policies) {
				t.Errorf("%q is there twice", name)
			}

			names[name] = true
		}

		if len(names) != len(s.Policies) {
			t.Errorf("%d names of %d policies", len(names), len(s.Policies))
		}
	}
}
