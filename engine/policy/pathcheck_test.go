// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
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

			if diff := cmp.Diff(want, p.Check(gk, parseSchema(t, text), nil)); diff != "" {
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
	if diff := cmp.Diff(want, p.Check(schema.GroupKind{Kind: "Database"}, s, nil)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAPolicyThatNobodyCanMakeUseOfIsReported(t *testing.T) {
	person := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}
	controller := v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: "crossplane-system", Name: "crossplane"}
	data := []v1alpha1.Permission{{Kind: "ConfigMap", Mutations: []string{"data"}}}

	cases := map[string]struct {
		reason   string
		fields   []string
		subjects []v1alpha1.Subject
		allow    []v1alpha1.Permission
		given    []v1alpha1.Permission
		want     bool
	}{
		"Initiators":      {reason: "Who may initiate makes use of it.", subjects: []v1alpha1.Subject{controller, person}, allow: data},
		"Forbids":         {reason: "A policy that nobody may use on purpose says so.", allow: nil},
		"ForbidsSubjects": {reason: "One that names subjects meant something else.", subjects: []v1alpha1.Subject{controller}, want: true},
		"NothingAbove":    {reason: "Nobody allows its fields to be changed.", allow: data, want: true},
		"Above":           {reason: "Another policy does.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec"}}}},
		"Part":            {reason: "A part of it is enough.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", APIGroup: "example.org", Mutations: []string{"spec.size[0].unit"}}}},
		"Wildcard": {
			reason: "A wildcard may stand for it.", allow: data, fields: []string{"spec.items[*].name"},
			given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec.items[3]"}}},
		},
		"AnotherField": {reason: "Another field is not.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec.name"}}}, want: true},
		"AnotherKind":  {reason: "Nor is another kind.", allow: data, given: []v1alpha1.Permission{{Kind: "Base", Mutations: []string{"spec"}}}, want: true},
		"AnotherGroup": {reason: "Nor another group.", allow: data, given: []v1alpha1.Permission{{Kind: "Database", APIGroup: "a", Mutations: []string{"spec"}}}, want: true},
		"External":     {reason: "An action outside is no field.", allow: data, given: []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{"spec"}}}, want: true},
		"Create":       {reason: "A creation is not covered by fields.", allow: data, fields: []string{"create"}, given: []v1alpha1.Permission{{Kind: "Database", Mutations: []string{"spec"}}}, want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.fields == nil {
				tc.fields = []string{"spec.size"}
			}

			p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match: v1alpha1.Match{APIGroup: "example.org", Kind: "Database", Fields: tc.fields}, Subjects: tc.subjects, Allow: tc.allow,
			}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}

			if got := p.CheckReach(tc.given); (len(got) > 0) != tc.want {
				t.Errorf("%s\nCheckReach: %v", tc.reason, got)
			}
		})
	}
}
