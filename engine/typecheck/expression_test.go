// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// crdSchema is a CRD's, with about every kind of field there is. Its metadata
// is as bare as CRDs have it.
const crdSchema = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    properties:
      size: {type: string}
      namespace: {type: string}
      dashed-name: {type: string}
      replicas: {type: integer, format: int32}
      ratio: {type: number}
      enabled: {type: boolean}
      since: {type: string, format: date-time}
      cert: {type: string, format: byte}
      note: {type: string, nullable: true}
      parent: {type: object, nullable: true, properties: {name: {type: string}}}
      port: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
      oldPort: {type: string, format: int-or-string}
      typedPort: {type: integer, x-kubernetes-int-or-string: true}
      either: {type: [integer, string]}
      untyped: {x-kubernetes-preserve-unknown-fields: true}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      partlyFree: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      tags: {type: object, additionalProperties: {type: string}}
      noTags: {type: object, nullable: true, additionalProperties: {type: string}}
      anything: {type: object, additionalProperties: true}
      quotas: {type: object, additionalProperties: {type: object, properties: {limit: {type: integer}}}}
      items: {type: array, items: {type: object, properties: {name: {type: string}}}}
      names: {type: array, items: {type: string}}
      manifest: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      template:
        type: object
        x-kubernetes-embedded-resource: true
        properties: {spec: {type: object, properties: {size: {type: string}}}}
`

// builtInSchema is one of a kind that the API server is built with.
const builtInSchema = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata:
    type: object
    properties:
      name: {type: string}
      generateName: {type: string}
      creationTimestamp: {type: string, format: date-time}
      annotations: {type: object, additionalProperties: {type: string, default: ""}}
      labels: {type: object, additionalProperties: {type: string, default: ""}}
  data: {type: object, additionalProperties: {type: string, format: byte}}
  limits: {type: object, additionalProperties: {oneOf: [{type: string}, {type: number}]}}
`

func parseSchema(tb testing.TB, text string) *spec.Schema {
	tb.Helper()

	s := &spec.Schema{}
	if err := yaml.Unmarshal([]byte(text), s); err != nil {
		tb.Fatal(err)
	}

	return s
}

// about compiles a policy with the given expressions.
func about(tb testing.TB, expressions ...string) *policy.Policy {
	tb.Helper()

	p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: v1alpha1.Match{
		Kind: "XDatabase", Fields: []string{"spec.size"}, CEL: expressions,
	}}})
	if len(errs) > 0 {
		tb.Fatal(errs)
	}

	return p
}

// typed are the warnings about the expressions of a policy about XDatabases of a schema.
func typed(p *policy.Policy, s *spec.Schema) []v1alpha1.TypeCheckingWarning {
	list := typecheck.Against{Kind: schema.GroupKind{Kind: "XDatabase"}, Schema: s, Managed: true}.Policy(p.Spec())

	return typecheck.Warnings(slices.DeleteFunc(list, func(f typecheck.Finding) bool { return f.Rule != typecheck.CELType }))
}

func TestAnExpressionIsCheckedAgainstTheSchemaOfItsKind(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Field": {
			reason: "A field that the schema has not is a typo.",
			text:   "object.spec.sizee == 'x'",
			want:   "1:12: undefined field 'sizee'",
		},
		"OldField": {
			reason: "The old object is of the same kind.",
			text:   "object.spec.size != oldObject.spec.sizee",
			want:   "1:35: undefined field 'sizee'",
		},
		"FieldOfHas": {
			reason: "A field that cannot be there makes has() false for ever.",
			text:   "has(object.spec.sizee)",
			want:   "1:4: undefined field 'sizee'",
		},
		"OptionalField": {
			reason: "CEL's optional fields are fields.",
			text:   "object.?spec.?sizee.orValue('') == 'x'",
			want:   "1:13: undefined field 'sizee'",
		},
		"FieldOfHasKey": {
			reason: "What our has() multiplies is reported once.",
			text:   "has(object.spec.tagz['x'])",
			want:   "1:4: undefined field 'tagz'",
		},
		"FieldOfRoot": {
			reason: "The object itself has known fields too.",
			text:   "object.specc.size == 'x'",
			want:   "1:7: undefined field 'specc'",
		},
		"FieldOfMetadata": {
			reason: "Metadata has the fields of ObjectMeta though a CRD does not list them.",
			text:   "object.metadata.label['x'] == 'y'",
			want:   "1:16: undefined field 'label'",
		},
		"FieldOfItem": {
			reason: "Variables of all() and the like have the type of what they go through.",
			text:   "object.spec.items.all(i, i.nam == 'x')",
			want:   "1:27: undefined field 'nam'",
		},
		"FieldOfList": {
			reason: "A list has items, but no fields.",
			text:   "object.spec.items.name == 'x'",
			want:   "1:18: type 'list({object.spec.items[*]})' does not support field selection",
		},
		"FieldOfMapValue": {
			reason: "The values of a map have a schema too.",
			text:   "object.spec.quotas['cpu'].limits > 1",
			want:   "1:26: undefined field 'limits'",
		},
		"FieldOfEmbeddedResource": {
			reason: "What is known of an embedded resource is checked.",
			text:   "object.spec.template.metadata.name == 'x' && object.spec.template.spec.sizee == 'x'",
			want:   "1:71: undefined field 'sizee'",
		},
		"FieldOfRequest": {
			reason: "A request has the fields that decisions fill.",
			text:   "request.userInfo.name == 'x'",
			want:   "1:17: undefined field 'name'",
		},
		"FieldOfNamespace": {
			reason: "A namespace has metadata like every object.",
			text:   "namespaceObject.metadata.lables['x'] == 'y'",
			want:   "1:25: undefined field 'lables'",
		},
		"EscapedName": {
			reason: "Fields have their own names when an expression is evaluated, and not those of CRD rules.",
			text:   "object.spec.__namespace__ == 'x'",
			want:   "1:12: undefined field '__namespace__'",
		},
		"Comparison": {
			reason: "A number is never a text.",
			text:   "object.spec.replicas == '3'",
			want:   "1:22: found no matching overload for '_==_' applied to '(int, string)'",
		},
		"Less": {
			reason: "A text is not to be compared with a time, in whatever format it is.",
			text:   "object.spec.since < timestamp('2030-01-01T00:00:00Z')",
			want:   "1:19: found no matching overload for '_<_' applied to '(string, timestamp)'",
		},
		"Result": {
			reason: "An expression has to give true or false.",
			text:   "object.spec.size",
			want:   "1:1: it does not give true or false but string",
		},
		"Lines": {
			reason: "The position is that in the text as written; errors are in its order, each the first time.",
			text:   "object.spec.sizee == 'x' &&\n  object.spec.replicaz == 1 && object.spec.sizee == 'y'",
			want:   "1:12: undefined field 'sizee'; 2:14: undefined field 'replicaz'",
		},
		"OrderOfErrors": {
			reason: "Errors are in the order of the text, not in that of the checker.",
			text:   "object.spec.sizee.startsWith(object.spec.clas)",
			want:   "1:12: undefined field 'sizee'; 1:41: undefined field 'clas'",
		},
		"Many": {
			reason: "A status is no place for dozens of errors.",
			text:   "object.a == 1 || object.b == 1 || object.c == 1 || object.d == 1 || object.e == 1 || object.f == 1 || object.g == 1",
			want: "1:7: undefined field 'a'; 1:24: undefined field 'b'; 1:41: undefined field 'c'; 1:58: undefined field 'd'; " +
				"1:75: undefined field 'e'; and 2 more",
		},
	}

	crd := parseSchema(t, crdSchema)

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := []v1alpha1.TypeCheckingWarning{{Field: "spec.match.cel[0]", Warning: tc.want}}
			if diff := cmp.Diff(want, typed(about(t, tc.text), crd)); diff != "" {
				t.Errorf("%s\nTypeCheck(%q): -want, +got:\n%s", tc.reason, tc.text, diff)
			}
		})
	}
}

// TestCloseWhenIsCheckedLikeAnyExpression but for what it sees: the managed
// resource alone.
func TestCloseWhenIsCheckedLikeAnyExpression(t *testing.T) {
	closing := func(text string) *policy.Policy {
		p := &v1alpha1.AllowancePolicy{}
		p.Spec.Gate = &v1alpha1.GateSettings{CloseWhen: text}

		out, errs := policy.Compile(p)
		if len(errs) > 0 {
			t.Fatal(errs)
		}

		return out
	}

	crd := parseSchema(t, crdSchema)
	want := []v1alpha1.TypeCheckingWarning{{Field: "spec.gate.closeWhen", Warning: "1:12: undefined field 'sizee'"}}

	if diff := cmp.Diff(want, typed(closing("object.spec.sizee == 'x' && object.metadata.name != ''"), crd)); diff != "" {
		t.Errorf("wrong: -want, +got:\n%s", diff)
	}

	for name, got := range map[string][]v1alpha1.TypeCheckingWarning{
		"right":     typed(closing("object.spec.size == 'x'"), crd),
		"no schema": typed(closing("object.spec.sizee == 'x'"), nil),
		"none":      typed(about(t, "object.spec.size == 'x'"), crd),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAWarningNamesTheExpression(t *testing.T) {
	want := []v1alpha1.TypeCheckingWarning{
		{Field: "spec.match.cel[1]", Warning: "1:12: undefined field 'a'"},
		{Field: "spec.match.cel[3]", Warning: "1:12: undefined field 'b'"},
	}

	p := about(t, "true", "object.spec.a == 1", "object.spec.size == 'x'", "object.spec.b == 1")
	for range 3 {
		if diff := cmp.Diff(want, typed(p, parseSchema(t, crdSchema))); diff != "" {
			t.Errorf("TypeCheck: -want, +got:\n%s", diff)
		}
	}
}

func TestWhatIsRightWhenItIsEvaluatedGivesNoWarning(t *testing.T) {
	everywhere := []string{
		"object.metadata.annotations['x'] == 'y'",
		"object.metadata.labels['x'] == 'y'",
		"object.metadata.labels.x == 'y'",
		"has(object.metadata.annotations['x'])",
		"has(object.metadata.annotations) && 'x' in object.metadata.annotations",
		"object.metadata.?annotations[?'x'].orValue('') == 'y'",
		"object.metadata.name.startsWith('a') && object.metadata.namespace == request.namespace",
		"object.metadata.ownerReferences.exists(o, o.controller && o.kind == 'X')",
		"object.metadata.managedFields.all(m, m.manager != 'kubectl')",
		"object.metadata.creationTimestamp == '2030-01-01T00:00:00Z'",
		"object.kind == 'X' && object.apiVersion == 'v1'",
		"object == null || oldObject != null && object.metadata == oldObject.metadata",
		"namespaceObject == null || namespaceObject.metadata.labels['env'] == 'prod'",
		"namespaceObject.status.phase == 'Active'",
		"request.operation == 'UPDATE' && request.name == 'x' && request.userInfo.groups.exists(g, g == 'dba')",
		"request.userInfo.username.startsWith('system:') && 'dba' in request.userInfo.groups",
		"request['operation'] == 'UPDATE'",
		"quantity('1Gi').isGreaterThan(quantity('1Mi')) && url('https://example.org').getHost() == 'example.org'",
	}

	cases := map[string]struct {
		reason      string
		schema      string
		expressions []string
	}{
		"CRD": {
			reason: "Neither what a schema leaves open nor how CRD rules see it may be held against a policy.",
			schema: crdSchema,
			expressions: append([]string{
				"object.spec.namespace == 'x'",
				"object.spec['size'] == 'x' && object.spec['dashed-name'] == 'y' && object.spec.`dashed-name` == 'y'",
				"has(object.spec['size']) && 'size' in object.spec && size(object.spec) > 1",
				"['size', 'namespace'].all(k, object.spec[k] == oldObject.spec[k])",
				"object.spec.all(k, k != 'x') && object.spec.exists(k, k == 'size')",
				"object.spec.parent == {'name': 'x'} || object.spec.parent == null || object.spec.parent.name == 'x'",
				"object.spec.replicas > 2.5 && object.spec.ratio == 1 && object.spec.ratio > 0.5",
				"object.spec.enabled",
				"timestamp(object.spec.since) > timestamp('2030-01-01T00:00:00Z') && object.spec.since != ''",
				"object.spec.cert == 'aGVsbG8='",
				"object.spec.note == null || object.spec.note == 'x'",
				"object.spec.port == 80 || object.spec.port == 'http' || object.spec.oldPort == 80 || object.spec.typedPort == 'http'",
				"object.spec.either == 1 || object.spec.either == 'x'",
				"object.spec.noTags == null || object.spec.noTags.x == 'y'",
				"object.spec.untyped",
				"object.spec.untyped.a.b == 1 && object.spec.untyped[0] == 'x'",
				"object.spec.free.a.b == 1 && object.spec.partlyFree.known == 'x' && object.spec.partlyFree.other.x == 1",
				"object.spec.tags.x == 'y' && object.spec.tags['a/b'] == 'y' && object.spec.anything.x.y == 1",
				"object.spec.quotas.all(k, object.spec.quotas[k].limit > 1)",
				"object.spec.items[0].name == 'x' && object.spec.items.map(i, i.name) == object.spec.names",
				"object.spec.items == oldObject.spec.items && object.spec == oldObject.spec",
				"object.spec.manifest.data.x == 'y' && object.spec.manifest.metadata.name == 'x'",
				"object.spec.template.metadata.labels['x'] == 'y' && object.spec.template.kind == 'X'",
			}, everywhere...),
		},
		"BuiltIn": {
			reason: "Kinds of the API server itself are as open to policies as those of CRDs.",
			schema: builtInSchema,
			expressions: append([]string{
				"object.data.password == 'aGVsbG8='",
				"object.limits.cpu == '1' || quantity(object.limits['cpu']).isGreaterThan(quantity('1'))",
			}, everywhere...),
		},
		"NoFields": {
			reason:      "An object of which nothing is known may have any field.",
			schema:      `{type: object}`,
			expressions: append([]string{"object.spec.sizee == 'x' && object.data['x'] == 1"}, everywhere...),
		},
		"Preserved": {
			reason:      "A CRD may leave all of its objects open.",
			schema:      `{type: object, properties: {metadata: {type: object}}, x-kubernetes-preserve-unknown-fields: true}`,
			expressions: append([]string{"object.spec.sizee == 'x' && object.data['x'] == 1"}, everywhere...),
		},
		"NoObject": {
			reason:      "A schema that is no object's cannot be checked against.",
			schema:      `{type: string}`,
			expressions: []string{"object.metadata.nam == 'x'"},
		},
		"NoType": {
			reason:      "A schema without a type says nothing.",
			schema:      `{}`,
			expressions: []string{"object.metadata.nam == 'x'"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]v1alpha1.TypeCheckingWarning(nil), typed(about(t, tc.expressions...), parseSchema(t, tc.schema))); diff != "" {
				t.Errorf("%s\nTypeCheck: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithoutASchemaThereIsNoWarning(t *testing.T) {
	if got := typed(about(t, "object.spec.sizee == 'x'"), nil); got != nil {
		t.Errorf("TypeCheck(nil) = %v, want none", got)
	}
}

func TestACheckChangesNeitherTheSchemaNorThePolicy(t *testing.T) {
	crd := parseSchema(t, crdSchema)
	p := about(t, "object.spec.sizee == 'x' && object.spec.template.kind == 'X'")

	before, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}

	if len(typed(p, crd)) != 1 {
		t.Fatal("TypeCheck: want a warning")
	}

	after, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("The schema: -before, +after:\n%s", diff)
	}

	in := expression.Input{Object: map[string]any{"spec": map[string]any{"sizee": "x", "template": map[string]any{"kind": "X"}}}}
	if diff := cmp.Diff(policy.Evaluation{Met: true, Cost: 9}, p.Evaluate(in)); diff != "" {
		t.Errorf("Evaluate: -want, +got:\n%s", diff)
	}
}

// matching is a policy about XDatabases with parts of a match.
func matching(match v1alpha1.Match) *v1alpha1.AllowancePolicy {
	match.Kind, match.Fields = "XDatabase", []string{"spec"}

	return &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: match}}
}

func TestVariablesAndConditionsAreCheckedAgainstASchema(t *testing.T) {
	p, errs := policy.Compile(matching(v1alpha1.Match{
		Variables: []v1alpha1.Variable{
			{Name: "size", Expression: "object.spec.size"},
			{Name: "wrong", Expression: "object.spec.sice"},
			{Name: "count", Expression: "object.spec.replicas"},
		},
		CEL: []string{"variables.size.startsWith('l')", "variables.size > 3", "variables.wrong == 3"},
		MatchConditions: []v1alpha1.PolicyCondition{{
			MatchCondition:    v1alpha1.MatchCondition{Name: "a", Expression: "variables.count == 'x'"},
			MessageExpression: "variables.count",
		}},
	}))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	warnings := typed(p, parseSchema(t, crdSchema))
	got := make([]string, len(warnings))

	for i, w := range warnings {
		got[i] = w.Field + ": " + w.Warning
	}

	want := []string{
		"spec.match.variables[1].expression: 1:12: undefined field 'sice'",
		"spec.match.cel[1]: 1:16: found no matching overload for '_>_' applied to '(string, int)'",
		"spec.match.matchConditions[0].expression: 1:17: found no matching overload for '_==_' applied to '(int, string)'",
		"spec.match.matchConditions[0].messageExpression: 1:1: it does not give text but int",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestVariablesOfAPolicyWithoutConditionsAreChecked(t *testing.T) {
	p, errs := policy.Compile(matching(v1alpha1.Match{Variables: []v1alpha1.Variable{{Name: "wrong", Expression: "object.spec.sice"}}}))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	want := []v1alpha1.TypeCheckingWarning{{Field: "spec.match.variables[0].expression", Warning: "1:12: undefined field 'sice'"}}
	if diff := cmp.Diff(want, typed(p, parseSchema(t, crdSchema))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func BenchmarkTypeCheck(b *testing.B) {
	crd := parseSchema(b, crdSchema)

	for _, n := range []int{1, 8} {
		p := about(b, strings.Split(strings.Repeat("object.spec.size == 'x';", n-1)+"object.spec.sizee == 'x'", ";")...)

		b.Run(fmt.Sprintf("expressions=%d", n), func(b *testing.B) {
			for b.Loop() {
				typed(p, crd)
			}
		})
	}
}
