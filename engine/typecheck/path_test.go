// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

func TestAPathIsCheckedAgainstTheSchema(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		schema string
		want   string
	}{
		"There":            {reason: "A field that is there is right.", path: "spec.size"},
		"Misspelled":       {reason: "What is nearly right is named.", path: "spec.sice", want: "spec.sice: there is no such field; did you mean spec.since or spec.size?"},
		"Case":             {reason: "Names are told apart by case.", path: "spec.oldport", want: "spec.oldport: there is no such field; did you mean spec.oldPort?"},
		"WithoutSpec":      {reason: "A path begins at the object.", path: "size", want: "size: there is no such field; did you mean spec.size?"},
		"Nowhere":          {reason: "Where nothing is like it, the fields are named.", path: "spec.parent.colour", want: "spec.parent.colour: there is no such field; spec.parent has name"},
		"Many":             {reason: "Of many fields some are named.", path: "spec.colour", want: "spec.colour: there is no such field; spec has anything, cert, dashed-name, either, enabled, free, items, manifest and 17 more"},
		"Below":            {reason: "What has no fields has none below.", path: "spec.size.large", want: "spec.size.large: spec.size is of type string, which has no fields"},
		"Index":            {reason: "An element of a list has fields.", path: "spec.items[0].name"},
		"All":              {reason: "So have all.", path: "spec.items[*].name"},
		"Element":          {reason: "A field of an element is checked too.", path: "spec.items[*].nane", want: "spec.items[*].nane: there is no such field; did you mean spec.items[*].name?"},
		"ListAsObject":     {reason: "A list has elements and no fields.", path: "spec.items.name", want: "spec.items.name: spec.items is a list: write [*] for all of its elements, or an index"},
		"WildcardOfObject": {reason: "A wildcard stands for the fields of an object too.", path: "spec[*].name"},
		"WildcardNowhere":  {reason: "One of them must have the rest.", path: "spec.parent[*].name", want: "spec.parent[*].name: spec.parent[*] is of type string, which has no fields"},
		"Map":              {reason: "A map may have any key.", path: "spec.tags[anything.at/all]"},
		"MapOfObjects":     {reason: "What its values have is known.", path: "spec.quotas[cpu].limits", want: "spec.quotas.cpu.limits: there is no such field; did you mean spec.quotas.cpu.limit?"},
		"Prefix":           {reason: "Keys of a map may have any prefix.", path: "spec.tags[team.example.org/*]"},
		"PrefixOfField":    {reason: "A prefix of names of fields is right where a field has it.", path: "spec[si*]"},
		"PrefixNowhere":    {reason: "Otherwise it stands for nothing.", path: "spec.parent[co*]", want: "spec.parent[co*]: no field of spec.parent begins with co"},
		"PrefixBelow":      {reason: "One that has it must have the rest.", path: "spec.parent[na*].x", want: "spec.parent[na*].x: spec.parent[na*] is of type string, which has no fields"},
		"PrefixOfElements": {reason: "A place in a list has no prefix.", path: "spec.items[1*].name", want: "spec.items[1*].name: spec.items is a list: write [*] for all of its elements, or an index"},
		"StarOfField":      {reason: "A prefix stands in brackets.", path: "spec.si*", want: "spec.si*: there is no such field, and outside of brackets * is a part of its name; did you mean spec[si*]?"},
		"StarOfKey":        {reason: "That of a key does, too.", path: "spec.tags.te*", want: "spec.tags.te*: there is no such field, and outside of brackets * is a part of its name; did you mean spec.tags[te*]?"},
		"Digits":           {reason: "Digits are a key too.", path: "spec.tags[1]"},
		"Open":             {reason: "Where unknown fields are kept, any may be there.", path: "spec.partlyFree.unknown.deeper"},
		"Untyped":          {reason: "Where there is no type, too.", path: "spec.untyped.x"},
		"IntOrString":      {reason: "A number or string is left alone.", path: "spec.port.x"},
		"Labels":           {reason: "Metadata is known, whatever a CRD says.", path: "metadata.labels[team]"},
		"Metadata":         {reason: "So a mistake in it is seen.", path: "metadata.lables[team]", want: "metadata.lables.team: there is no such field; did you mean metadata.labels?"},
		"Embedded":         {reason: "An embedded resource has metadata as any other.", path: "spec.template.metadata.name"},
		"Status":           {reason: "Nobody is asked about a status.", path: "status.phase", want: "status.phase: changes of status are reports of controllers, which no policy is asked about"},
		"Create":           {reason: "A creation is no field.", path: "create"},
		"BuiltIn":          {reason: "Built-in kinds have fields beside spec.", path: "data.x", schema: builtInSchema},
	}

	gk := schema.GroupKind{Group: "example.org", Kind: "Database"}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := tc.schema
			if text == "" {
				text = crdSchema
			}

			p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match: v1alpha1.Match{Kind: "Database", Fields: []string{"create", tc.path}},
				Allow: []v1alpha1.Permission{
					{Kind: "Database", APIGroup: "other.org", Mutations: []string{"nowhere"}},
					{Kind: "Database", APIGroup: "example.org", Mutations: []string{tc.path}},
				},
			}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			var want []v1alpha1.TypeCheckingWarning
			if tc.want != "" {
				want = []v1alpha1.TypeCheckingWarning{
					{Field: "spec.match.fields[1]", Warning: tc.want}, {Field: "spec.allow[1].mutations[0]", Warning: tc.want},
				}
			}

			if diff := cmp.Diff(want, typecheck.Warnings(typecheck.Against{Kind: gk, Schema: parseSchema(t, text)}.Policy(p.Spec()))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestACaptureIsCheckedAgainstTheSchema(t *testing.T) {
	p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{Kind: "Database", Fields: []string{"spec.size"}, Capture: []string{"spec.since", "status.phase", "spec.sinze"}},
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	s := parseSchema(t, crdSchema)
	s.Properties["status"] = *parseSchema(t, "{type: object, properties: {phase: {type: string}}}")

	want := []v1alpha1.TypeCheckingWarning{{Field: "spec.match.capture[2]", Warning: "spec.sinze: there is no such field; did you mean spec.since or spec.size?"}}
	if diff := cmp.Diff(want, typecheck.Warnings(typecheck.Against{Kind: schema.GroupKind{Kind: "Database"}, Schema: s}.Policy(p.Spec()))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
