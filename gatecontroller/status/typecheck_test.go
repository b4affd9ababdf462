// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

var errDown = errors.New("the API server is down")

// fakeOpenAPI is an API server's OpenAPI: a field of the spec of kind Database
// for each group version.
type fakeOpenAPI struct {
	discovery.DiscoveryInterface

	fields map[string]string
	down   bool
	broken bool

	// asked is true when anybody wanted the index, documents counts what was
	// fetched of it.
	asked     bool
	documents int
}

func (f *fakeOpenAPI) OpenAPIV3() openapi.Client { return f }

func (f *fakeOpenAPI) Paths() (map[string]openapi.GroupVersion, error) {
	f.asked = true

	if f.down {
		return nil, errDown
	}

	out := map[string]openapi.GroupVersion{}
	for path, name := range f.fields {
		out[path] = fakeDocument{server: f, path: path, field: name}
	}

	return out, nil
}

type fakeDocument struct {
	server      *fakeOpenAPI
	path, field string
}

func (d fakeDocument) ServerRelativeURL() string {
	return "/openapi/v3/" + d.path + "?hash=" + d.field
}

func (d fakeDocument) Schema(string) ([]byte, error) {
	d.server.documents++

	if d.server.broken {
		return nil, errDown
	}

	var gv schema.GroupVersion
	if _, err := fmt.Sscanf(d.path, "apis/%1s/%2s", &gv.Group, &gv.Version); err != nil {
		gv.Version = "v1"
	}

	return fmt.Appendf(nil, `{"components":{"schemas":{"db":{
		"type": "object",
		"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/spec"}]}},
		"x-kubernetes-group-version-kind": [{"group":%q,"version":%q,"kind":"Database"}]
	}, "spec": {"type": "object", "properties": {%q: {"type": "string"}}}}}}`, gv.Group, gv.Version, d.field), nil
}

func typedPolicy(group, name string, expressions ...string) v1alpha1.AllowancePolicy {
	return v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{APIGroup: group, Kind: name, Fields: []string{"spec.size"}, CEL: expressions},
	}}
}

// parameterized is a policy whose parameters are Databases of a group.
func parameterized(group string, expressions ...string) v1alpha1.AllowancePolicy {
	p := typedPolicy("a", "Database", expressions...)
	p.Spec.ParamKind = &v1alpha1.ParamKind{APIVersion: group + "/v1", Kind: "Database"}
	p.Spec.ParamRef = &v1alpha1.ParamRef{Name: "default"}

	return p
}

var typedKinds = []kind.Served{
	{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Database"}},
	{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Database"}},
	{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Database"}, Resource: "alias"},
	{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Other"}},
	{GVK: schema.GroupVersionKind{Group: "b", Version: "v1", Kind: "Database"}},
	{GVK: schema.GroupVersionKind{Group: "m", Version: "v1", Kind: "Bucket"}, Managed: true},
}

func TestAPolicyIsCheckedAgainstEveryKindItMatches(t *testing.T) {
	published := map[string]string{"api/v1": "size", "apis/a/v1": "size", "apis/b/v1": "class"}

	cases := map[string]struct {
		reason        string
		policy        v1alpha1.AllowancePolicy
		server        fakeOpenAPI
		want          []v1alpha1.TypeCheckingWarning
		wantLater     bool
		wantAsked     bool
		wantDocuments int
	}{
		"OneKind": {
			reason:        "With a group there is one kind; a second resource of it changes nothing.",
			policy:        typedPolicy("a", "Database", "true", "object.spec.sizee == 'x'"),
			server:        fakeOpenAPI{fields: published},
			want:          []v1alpha1.TypeCheckingWarning{{Field: "spec.match.cel[1]", Warning: "a/v1, kind Database: 1:12: undefined field 'sizee'"}},
			wantAsked:     true,
			wantDocuments: 1,
		},
		"AnyGroup": {
			reason: "Without a group each kind of the name is checked, in order, the core group's too.",
			policy: typedPolicy("", "Database", "object.spec.other == 'x'"),
			server: fakeOpenAPI{fields: published},
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.cel[0]", Warning: "v1, kind Database: 1:12: undefined field 'other'"},
				{Field: "spec.match.cel[0]", Warning: "a/v1, kind Database: 1:12: undefined field 'other'"},
				{Field: "spec.match.fields[0]", Warning: "b/v1, kind Database: spec.size: there is no such field; spec has class"},
				{Field: "spec.match.cel[0]", Warning: "b/v1, kind Database: 1:12: undefined field 'other'"},
			},
			wantAsked:     true,
			wantDocuments: 3,
		},
		"Right": {
			reason:        "What is right gives no warning.",
			policy:        typedPolicy("a", "Database", "object.spec.size == 'x'"),
			server:        fakeOpenAPI{fields: published},
			wantAsked:     true,
			wantDocuments: 1,
		},
		"NoExpressions": {
			reason: "The paths of a policy without expressions are checked too, those of children by the children's schema.",
			policy: v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match:    v1alpha1.Match{APIGroup: "a", Kind: "Database", Fields: []string{"spec.sice"}},
				Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
				Allow:    []v1alpha1.Permission{{APIGroup: "b", Kind: "Database", Mutations: []string{"spec.size", "spec.class", "create"}}},
			}},
			server: fakeOpenAPI{fields: published},
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.fields[0]", Warning: "a/v1, kind Database: spec.sice: there is no such field; did you mean spec.size?"},
				{Field: "spec.allow[0].mutations[0]", Warning: "b/v1, kind Database: spec.size: there is no such field; spec has class"},
			},
			wantAsked:     true,
			wantDocuments: 2,
		},
		"Verbs": {
			reason: "A verb that no gate opens for is told, of managed resources every one.",
			policy: v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match:    v1alpha1.Match{APIGroup: "m", Kind: "Bucket", Fields: []string{"spec.size"}},
				Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
				Allow:    []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update", "update", "apply"}}},
			}},
			server: fakeOpenAPI{fields: published},
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.allow[0].mutations[1]", Warning: "update: did you mean Update? Verbs are compared letter by letter, and no gate opens for this one"},
				{Field: "spec.allow[0].mutations[2]", Warning: "apply: the gates of managed resources open for Create, Update, Delete only"},
			},
			wantLater: true,
			wantAsked: true,
		},
		"Parameters": {
			reason: "Parameters are checked against the schema of their own kind.",
			policy: parameterized("b", "params.spec.size == object.spec.size", "params.spec.class == object.spec.class", "params.spec.class == object.spec.size"),
			server: fakeOpenAPI{fields: published},
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.cel[0]", Warning: "a/v1, kind Database: 1:12: undefined field 'size'"},
				{Field: "spec.match.cel[1]", Warning: "a/v1, kind Database: 1:33: undefined field 'class'"},
			},
			wantAsked:     true,
			wantDocuments: 2,
		},
		"ParametersOfNoSchema": {
			reason: "What is not known of parameters may be anything.",
			policy: parameterized("c", "params.spec.size == object.spec.size", "params.spec.class == object.spec.class"),
			server: fakeOpenAPI{fields: published},
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.cel[1]", Warning: "a/v1, kind Database: 1:33: undefined field 'class'"},
			},
			wantLater:     true,
			wantAsked:     true,
			wantDocuments: 1,
		},
		"UnknownKind": {
			reason: "Nothing is fetched for a kind that is not served.",
			policy: typedPolicy("c", "Database", "object.spec.sizee == 'x'"),
			server: fakeOpenAPI{fields: published},
		},
		"NoSchema": {
			reason:        "A kind may have no schema, or not yet.",
			policy:        typedPolicy("a", "Other", "object.spec.sizee == 'x'"),
			server:        fakeOpenAPI{fields: published},
			wantLater:     true,
			wantAsked:     true,
			wantDocuments: 1,
		},
		"NoDocument": {
			reason:    "A group version may publish nothing, or not yet.",
			policy:    typedPolicy("a", "Database", "object.spec.sizee == 'x'"),
			wantLater: true,
			wantAsked: true,
		},
		"Down": {
			reason:    "That there are no schemas to be had is no error.",
			policy:    typedPolicy("a", "Database", "object.spec.sizee == 'x'"),
			server:    fakeOpenAPI{fields: published, down: true},
			wantLater: true,
			wantAsked: true,
		},
		"Invalid": {
			reason:        "What does not compile is reported elsewhere.",
			policy:        typedPolicy("a", "Database", "object.spec.sizee == 'x'", "object."),
			server:        fakeOpenAPI{fields: published},
			wantAsked:     true,
			wantDocuments: 1,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Schemas{Discovery: &tc.server}
			if got := s.Refresh(
				t.Context(), []v1alpha1.AllowancePolicy{tc.policy}, typedKinds, paramKinds([]v1alpha1.AllowancePolicy{tc.policy})...,
			); got == tc.wantLater {
				t.Errorf("%s\nrefresh: got complete %v, want %v", tc.reason, got, !tc.wantLater)
			}

			if diff := cmp.Diff(tc.want, s.check(&tc.policy, typedKinds, nil)); diff != "" {
				t.Errorf("%s\ncheck: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff([]any{tc.wantAsked, tc.wantDocuments}, []any{tc.server.asked, tc.server.documents}); diff != "" {
				t.Errorf("%s\nasked for the index, documents fetched: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestASchemaIsFetchedOnceAndAgainWhenItChanges(t *testing.T) {
	p := typedPolicy("a", "Database", "object.spec.sizee == 'x'")
	other := typedPolicy("a", "Other", "object.spec.sizee == 'x'")
	all := []v1alpha1.AllowancePolicy{p, other}
	server := &fakeOpenAPI{fields: map[string]string{"apis/a/v1": "size"}}
	s := &Schemas{Discovery: server}

	steps := []struct {
		reason   string
		change   func()
		policies []v1alpha1.AllowancePolicy
		warnings int
		fetched  int
		known    int
	}{
		{reason: "Nobody has asked before.", policies: all, warnings: 1, fetched: 1, known: 2},
		{reason: "Nothing has changed, neither the schema nor that there is none.", policies: all, warnings: 1, known: 2},
		{
			reason: "The CRD has changed, but what it was will do while there is no other.", policies: all, warnings: 1, fetched: 1, known: 2,
			change: func() { server.broken, server.fields["apis/a/v1"] = true, "sizee" },
		},
		{reason: "A failure is not for ever.", change: func() { server.broken = false }, policies: all, fetched: 1, warnings: 1, known: 2},
		{
			reason: "The CRD has changed back, which nobody can know.", policies: all, warnings: 1, known: 2,
			change: func() { server.down, server.fields["apis/a/v1"] = true, "size" },
		},
		{reason: "Now it is known.", change: func() { server.down = false }, policies: all, warnings: 1, fetched: 1, known: 2},
		{reason: "A kind that no policy is about is forgotten.", policies: []v1alpha1.AllowancePolicy{p}, warnings: 1, known: 1},
		{reason: "So are all.", known: 0},
	}

	for _, step := range steps {
		if step.change != nil {
			step.change()
		}

		server.documents = 0
		s.Refresh(t.Context(), step.policies, typedKinds)

		got := []int{len(s.check(&p, typedKinds, nil)), server.documents, len(s.known)}
		if diff := cmp.Diff([]int{step.warnings, step.fetched, step.known}, got); diff != "" {
			t.Errorf("%s\nwarnings, documents fetched, schemas known: -want, +got:\n%s", step.reason, diff)
		}
	}
}
