// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package customresource_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/internal/customresource"
	"github.com/kausality-io/kausality-crossplane/package/crds"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// validator is that of one of our kinds.
func validator(t *testing.T, kind string) *customresource.Validator {
	t.Helper()

	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}

	for _, crd := range all {
		if crd.Spec.Names.Kind != kind {
			continue
		}

		v, err := customresource.NewValidator(crd, "v1alpha1")
		if err != nil {
			t.Fatal(err)
		}

		return v
	}

	t.Fatalf("no CRD of %s", kind)

	return nil
}

func TestAnObjectIsValidatedAsTheAPIServerDoes(t *testing.T) {
	t.Parallel()

	const good = `match: {kind: A, fields: [spec.size]}, allow: []`

	cases := map[string]struct {
		reason  string
		kind    string
		object  string
		unknown []string
		errs    []string
		rules   int
	}{
		"Good": {
			reason: "What is right is right, and status and managed fields are nobody's to create.",
			object: `{metadata: {name: a}, spec: {` + good + `}, status: {nothing: real}}`,
		},
		"Unknown": {
			reason:  "Fields that the schema does not know are found, in metadata, too.",
			object:  `{metadata: {name: a, label: {}}, spec: {` + good + `, subjekts: [], gate: {close: x}}}`,
			unknown: []string{"metadata.label", "spec.gate.close", "spec.subjekts"},
		},
		"Name": {
			reason: "A name is one of DNS.",
			object: `{metadata: {name: A_B}, spec: {` + good + `}}`,
			errs:   []string{"metadata.name"},
		},
		"NoName": {
			reason: "An object has a name.",
			object: `{spec: {` + good + `}}`,
			errs:   []string{"metadata.name"},
		},
		"GeneratedName": {
			reason: "One that the API server makes is one, too.",
			object: `{metadata: {generateName: a-}, spec: {` + good + `}}`,
		},
		"NoGeneratedName": {
			reason: "Of what is no beginning of a name none is made.",
			object: `{metadata: {generateName: A_}, spec: {` + good + `}}`,
			errs:   []string{"metadata.generateName", "metadata.name"},
		},
		"Labels": {
			reason: "Metadata has types, too.",
			object: `{metadata: {name: a, labels: [x]}, spec: {` + good + `}}`,
			errs:   []string{"metadata"},
		},
		"Namespace": {
			reason: "What is in no namespace loses it.",
			object: `{metadata: {name: a, namespace: b}, spec: {` + good + `}}`,
		},
		"NoNamespace": {
			reason: "What is in one gets it from whoever applies it.",
			kind:   "AllowanceBinding",
			object: `{metadata: {name: a}, spec: {policy: p, subjects: [{kind: User, name: u}]}}`,
		},
		"Rules": {
			reason: "The rules of the schema are evaluated, and all of them.",
			object: `{metadata: {name: a}, spec: {match: {fields: [spec]}, allow: [{mutations: [spec]}]}}`,
			errs:   []string{"spec.allow[0]", "spec.match"},
			rules:  2,
		},
		"Blocked": {
			reason: "They are not where a value has another type.",
			object: `{metadata: {name: a}, spec: {match: {fields: [1]}, allow: []}}`,
			errs:   []string{"spec.match.fields[0]"},
		},
		"Null": {
			reason: "Null is as good as nothing.",
			object: `{metadata: {name: a}, spec: {` + good + `, owner: null}}`,
		},
		"Twice": {
			reason: "A list has each key once.",
			object: `{metadata: {name: a}, spec: {match: {kind: A, fields: [spec], matchConditions: [{name: a, expression: "true"}, {name: a, expression: "true"}]}, allow: []}}`,
			errs:   []string{"spec.match.matchConditions[1]"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.kind == "" {
				tc.kind = "AllowancePolicy"
			}

			object := fixture.Documents[map[string]any](t, tc.object)[0]
			object["apiVersion"], object["kind"] = "kausality.io/v1alpha1", tc.kind
			before := fmt.Sprint(object)

			got := validator(t, tc.kind).Validate(t.Context(), object)

			errs := make([]string, 0, len(got.Errs))
			for _, err := range got.Errs {
				errs = append(errs, err.Field)
			}

			if diff := cmp.Diff(append([]string{}, tc.errs...), errs); diff != "" {
				t.Errorf("%s\nerrors: -want, +got:\n%s\n%v", tc.reason, diff, got.Errs)
			}

			if diff := cmp.Diff(tc.unknown, got.Unknown); diff != "" {
				t.Errorf("%s\nunknown: -want, +got:\n%s", tc.reason, diff)
			}

			if got.Rules != tc.rules {
				t.Errorf("%s\n%d of rules, want %d", tc.reason, got.Rules, tc.rules)
			}

			if fmt.Sprint(object) != before {
				t.Errorf("%s\nthe object was modified", tc.reason)
			}
		})
	}
}

func TestAnObjectGetsItsDefaults(t *testing.T) {
	t.Parallel()

	in := fixture.Documents[map[string]any](t, `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: a}
spec: {match: {kind: A, fields: [spec]}, allow: [{kind: B, mutations: [spec]}]}
status: {observedGeneration: 1}
`)[0]

	want := `allow:
- kind: B
  mutations:
  - spec
  relation: Child
bindingMode: None
enforcementMode: Enforce
match:
  fields:
  - spec
  kind: A
`

	got := validator(t, "AllowancePolicy").Validate(t.Context(), in)

	raw, err := yaml.Marshal(got.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if got.Object["status"] != nil {
		t.Error("it has a status")
	}
}

func TestTheSiblingsOfAFieldAreThoseOfItsSchema(t *testing.T) {
	t.Parallel()

	v := validator(t, "AllowancePolicy")

	for path, want := range map[string][]string{
		"spec.owner.nam":                    {"contact", "name"},
		"spec.match.variables[0].expresion": {"expression", "name"},
		"spec.nothing.of.it":                nil,
		"spec.match.variables.expression":   nil,
		"spec[":                             nil,
	} {
		if diff := cmp.Diff(want, v.Siblings(path)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", path, diff)
		}
	}
}
