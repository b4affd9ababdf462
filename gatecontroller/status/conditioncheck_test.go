// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// conditional is an Enforcement of resources of a group with conditions.
func conditional(group, resource string, expressions ...string) v1alpha1.Enforcement {
	e := v1alpha1.Enforcement{}
	e.Name = "e"
	e.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}}

	for i, x := range expressions {
		e.Spec.MatchConditions = append(e.Spec.MatchConditions, v1alpha1.MatchCondition{Name: strconv.Itoa(i), Expression: x})
	}

	return e
}

func TestTheConditionsOfAnEnforcementAreChecked(t *testing.T) {
	served := []kind.Served{
		{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Database"}, Resource: "databases"},
		{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Other"}, Resource: "others"},
		{GVK: schema.GroupVersionKind{Group: "b", Version: "v1", Kind: "Database"}, Resource: "databases"},
	}

	cases := map[string]struct {
		reason      string
		enforcement v1alpha1.Enforcement
		want        []v1alpha1.TypeCheckingWarning
		message     string
		known       int
	}{
		"Wrong": {
			reason:      "Each condition is checked against the kind that a rule names, and the message has the first warning.",
			enforcement: conditional("a", "databases", "object.spec.sizee == 'x'", "object.spec.size == 'x'", "request.userr == 'x'"),
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.matchConditions[0].expression", Warning: "a/v1, kind Database: 1:12: undefined field 'sizee'"},
				{Field: "spec.matchConditions[2].expression", Warning: "a/v1, kind Database: 1:8: undefined field 'userr'"},
			},
			message: "the Enforcement is in force, but spec.matchConditions[0].expression: " +
				"a/v1, kind Database: 1:12: undefined field 'sizee'; status.typeChecking has 1 more",
			known: 1,
		},
		"Group": {
			reason:      "All of a group is named by it, with or without a schema.",
			enforcement: conditional("a", "*", "object.spec.sizee == 'x'"),
			want:        []v1alpha1.TypeCheckingWarning{{Field: "spec.matchConditions[0].expression", Warning: "a/v1, kind Database: 1:12: undefined field 'sizee'"}},
			message:     "the Enforcement is in force, but spec.matchConditions[0].expression: a/v1, kind Database: 1:12: undefined field 'sizee'",
			known:       2,
		},
		"Broken": {
			reason:      "What compiles of a broken one is checked, at its own place.",
			enforcement: conditional("a", "databases", "object.spec.(", "object.spec.sizee == 'x'"),
			want:        []v1alpha1.TypeCheckingWarning{{Field: "spec.matchConditions[1].expression", Warning: "a/v1, kind Database: 1:12: undefined field 'sizee'"}},
			message: "spec.matchConditions[0].expression: Invalid value: \"object.spec.(\": cannot compile CEL: ERROR: <input>:1:13: " +
				"Syntax error: no viable alternative at input '.('\n | object.spec.(\n | ............^",
			known: 1,
		},
		"Right":    {"What is right gives no warning.", conditional("b", "databases", "object.spec.class == 'x'"), nil, "the Enforcement is in force", 1},
		"None":     {"Without conditions no schema is fetched.", conditional("a", "databases"), nil, "the Enforcement is in force", 0},
		"Anything": {"A rule about whatever there is has nothing to be checked against.", conditional("*", "*", "object.spec.sizee == 'x'"), nil, "the Enforcement is in force", 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Schemas{Discovery: &fakeOpenAPI{fields: map[string]string{"apis/a/v1": "size", "apis/b/v1": "class"}}}
			s.Refresh(t.Context(), nil, nil, typecheck.EnforcedKinds([]v1alpha1.Enforcement{tc.enforcement}, served)...)

			tc.enforcement.Status.TypeChecking = s.checkEnforcement(&tc.enforcement, served)
			if diff := cmp.Diff(tc.want, tc.enforcement.Status.TypeChecking); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			c := &Reporter{Rights: NewRights(nil)}
			if got := c.inForce(&tc.enforcement, served); got.Message != tc.message {
				t.Errorf("%s\nmessage %q, want %q", tc.reason, got.Message, tc.message)
			}

			if len(s.known) != tc.known {
				t.Errorf("%s\n%d schemas are known, want %d", tc.reason, len(s.known), tc.known)
			}
		})
	}
}

// TestTheConditionsAreCheckedAgainstTenKinds at most: a group may have hundreds.
func TestTheConditionsAreCheckedAgainstTenKinds(t *testing.T) {
	served := make([]kind.Served, 0, 20)
	for i := range cap(served) {
		served = append(served, kind.Served{
			GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: fmt.Sprintf("Kind%d", i)}, Resource: fmt.Sprintf("kind%ds", i),
		})
	}

	if got := typecheck.EnforcedKinds([]v1alpha1.Enforcement{conditional("a", "*", "true")}, served); len(got) != 10 {
		t.Errorf("%d kinds, want 10: %v", len(got), got)
	}
}

func TestCloseWhenIsCheckedAgainstManagedResources(t *testing.T) {
	p := typedPolicy("a", "Database")
	p.Spec.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "hans", MayInitiate: true}}
	p.Spec.Allow = []v1alpha1.Permission{{APIGroup: "b", Kind: "Database", Mutations: []string{"spec.class"}}}
	p.Spec.Gate = &v1alpha1.GateSettings{CloseWhen: "object.spec.size == 'x' || object.spec.clas == 'y'"}

	kinds := []kind.Served{
		{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Database"}},
		{GVK: schema.GroupVersionKind{Group: "b", Version: "v1", Kind: "Database"}, Managed: true},
	}

	s := &Schemas{Discovery: &fakeOpenAPI{fields: map[string]string{"apis/a/v1": "size", "apis/b/v1": "class"}}}
	s.Refresh(t.Context(), []v1alpha1.AllowancePolicy{p}, kinds)

	want := []v1alpha1.TypeCheckingWarning{{
		Field: "spec.gate.closeWhen", Warning: "b/v1, kind Database: 1:12: undefined field 'size'; 1:39: undefined field 'clas'",
	}}
	if diff := cmp.Diff(want, s.check(&p, kinds, nil)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	p.Spec.Gate.CloseWhen = "object.spec.class == 'x' && object.metadata.name != ''"
	if got := s.check(&p, kinds, nil); got != nil {
		t.Errorf("what is right: %v", got)
	}
}
