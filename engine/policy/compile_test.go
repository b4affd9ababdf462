// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func parse(t *testing.T, text string) *v1alpha1.AllowancePolicy {
	t.Helper()

	p := &v1alpha1.AllowancePolicy{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}

	return p
}

func compile(t *testing.T, text string) *policy.Policy {
	t.Helper()

	p, errs := policy.Compile(parse(t, text))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return p
}

func TestEveryDocumentOfTheReferenceCompiles(t *testing.T) {
	raw, err := os.ReadFile("testdata/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var names []string

	for r := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(string(doc), "kind: UpgradeAllowance") {
			u := &v1alpha1.UpgradeAllowance{}
			if err := yaml.UnmarshalStrict(doc, u); err != nil {
				t.Fatal(err)
			}

			if errs := policy.CheckPermissions(u.Spec.Allow, field.NewPath("spec", "allow")); len(errs) > 0 {
				t.Errorf("%s: %v", u.GetName(), errs)
			}

			names = append(names, u.GetName())

			continue
		}

		names = append(names, compile(t, string(doc)).Name())
	}

	want := []string{
		"deployment-to-replicaset", "crossplane-upgrade-2024-01-06",
		"database-claim-to-xr", "xdatabase-to-rds", "xdatabase-to-rds-destructive",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("documents, -want, +got:\n%s", diff)
	}
}

func TestWhatDoesNotCompileIsNamedByItsPath(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         []string
	}{
		"CEL": {
			reason: "Each expression that is wrong, and not those that are right.",
			text:   "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec], cel: ['object.', 'true', '1 + 1', 'nope']}, allow: [{kind: B, mutations: [spec]}]}}",
			want:   []string{"spec.match.cel[0]", "spec.match.cel[2]", "spec.match.cel[3]"},
		},
		"Fields": {
			reason: "Field paths.",
			text:   "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec, 'spec[', '']}, allow: [{kind: B, mutations: [spec]}]}}",
			want:   []string{"spec.match.fields[1]", "spec.match.fields[2]"},
		},
		"Capture": {
			reason: "What is captured has a value.",
			text:   "{metadata: {name: p}, spec: {match: {kind: A, fields: [create], capture: [create, 'a..b', delete]}, allow: [{kind: B, mutations: [spec]}]}}",
			want:   []string{"spec.match.capture[1]", "spec.match.capture[0]", "spec.match.capture[2]"},
		},
		"Selectors": {
			reason: "Selectors.",
			text: "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec], objectSelector: {matchExpressions: [{key: a, operator: Wrong}]}, " +
				"namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}, allow: [{kind: B, mutations: [spec]}]}}",
			want: []string{"spec.match.objectSelector", "spec.match.namespaceSelector"},
		},
		"Mutations": {
			reason: "Mutations of children, but not the free verbs of external systems.",
			text: "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec]}, allow: [{relation: External, mutations: ['app[ly']}, " +
				"{kind: B, mutations: [spec, 'spec]']}]}}",
			want: []string{"spec.allow[1].mutations[1]"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := policy.Compile(parse(t, tc.text))

			got := make([]string, 0, len(errs))
			for _, err := range errs {
				got = append(got, err.Field)

				if strings.Contains(err.Error(), "\n\n") {
					t.Errorf("%s\nerror of more than one paragraph: %q", tc.reason, err)
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nerrors, -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
		})
	}
}

func TestAPolicyIsMetWhereSelectorsAndExpressionsHold(t *testing.T) {
	object := func(text string) map[string]any {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}

		return m
	}

	prod := object("{metadata: {namespace: a, labels: {env: prod}}, spec: {size: large}}")
	cluster := object("{metadata: {labels: {env: prod}}, spec: {size: large}}")

	cases := map[string]struct {
		reason  string
		match   string
		in      expression.Input
		missing string
		problem bool
	}{
		"Nothing":     {reason: "Nothing asked is met.", match: "", in: expression.Input{Object: prod}},
		"Label":       {reason: "The object's label.", match: ", objectSelector: {matchLabels: {env: prod}}", in: expression.Input{Object: prod}},
		"NoLabel":     {reason: "Another label.", match: ", objectSelector: {matchLabels: {env: dev}}", in: expression.Input{Object: prod}, missing: `objectSelector "env=dev"`},
		"Deleted":     {reason: "The old object's label on delete.", match: ", objectSelector: {matchLabels: {env: prod}}", in: expression.Input{OldObject: prod}},
		"Namespace":   {reason: "The namespace's label.", match: ", namespaceSelector: {matchLabels: {team: x}}", in: expression.Input{Object: prod, NamespaceObject: object("{metadata: {labels: {team: x}}}")}},
		"NoNamespace": {reason: "Another.", match: ", namespaceSelector: {matchLabels: {team: x}}", in: expression.Input{Object: prod, NamespaceObject: object("{metadata: {}}")}, missing: `namespaceSelector "team=x"`},
		"Unknown":     {reason: "Where the namespace is not known, a selector of namespaces is not met.", match: ", namespaceSelector: {matchLabels: {team: x}}", in: expression.Input{Object: prod}, missing: "namespaceSelector"},
		"Cluster":     {reason: "A cluster-scoped object is in none.", match: ", namespaceSelector: {matchLabels: {team: x}}", in: expression.Input{Object: cluster}},
		"True":        {reason: "All expressions.", match: `, cel: ["object.spec.size == 'large'", "true"]`, in: expression.Input{Object: prod}},
		"False":       {reason: "The first that is false is named.", match: `, cel: ["true", "object.spec.size == 'small'", "false"]`, in: expression.Input{Object: prod}, missing: `CEL "object.spec.size == 'small'" is false`},
		"Error":       {reason: "One that fails is reported and is no match.", match: `, cel: ["object.spec.other == 1"]`, in: expression.Input{Object: prod}, missing: "could not be evaluated", problem: true},
		"OnCreate":    {reason: "There is no old object on create.", match: `, cel: ["oldObject == null"]`, in: expression.Input{Object: prod}},
		"Request":     {reason: "The request can be asked.", match: `, cel: ["request.operation == 'UPDATE' && 'a' in request.userInfo.groups"]`, in: expression.Input{Object: prod, Request: func() map[string]any { return object("{operation: UPDATE, userInfo: {groups: [a]}}") }}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := compile(t, "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec]"+tc.match+"}, allow: [{kind: B, mutations: [spec]}]}}")
			v := p.Evaluate(tc.in)

			if v.Met != (tc.missing == "") || !strings.Contains(v.Missing, tc.missing) || (v.Problem != nil) != tc.problem {
				t.Errorf("%s\nEvaluate: %+v, want %q", tc.reason, v, tc.missing)
			}
		})
	}
}

func TestThePoliciesBudgetIsOneForAllItsExpressions(t *testing.T) {
	nested := "object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))"
	list := make([]any, 50)

	for i := range list {
		list[i] = int64(i)
	}

	p := compile(t, "{metadata: {name: p}, spec: {match: {kind: A, fields: [spec], cel: ['"+strings.Repeat(nested+"', '", 20)+"true']}, allow: [{kind: B, mutations: [spec]}]}}")
	if v := p.Evaluate(expression.Input{Object: map[string]any{"l": list}}); v.Met || v.Problem == nil || !strings.Contains(v.Problem.Error(), "cost") {
		t.Errorf("Evaluate: %+v", v)
	}
}

func TestSubjectsAreThoseOfRBAC(t *testing.T) {
	hans := policy.User{Name: "hans", Groups: []string{"platform-team", "system:authenticated"}}
	robot := policy.User{Name: "system:serviceaccount:ns:robot", Groups: policy.ServiceAccountGroups("system:serviceaccount:ns:robot")}

	cases := map[string]struct {
		subject v1alpha1.Subject
		hans    bool
		robot   bool
	}{
		"User":           {v1alpha1.Subject{Kind: "User", Name: "hans"}, true, false},
		"Group":          {v1alpha1.Subject{Kind: "Group", Name: "platform-team"}, true, false},
		"ServiceAccount": {v1alpha1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "ns"}, false, true},
		"OtherNamespace": {v1alpha1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "other"}, false, false},
		"AsUser":         {v1alpha1.Subject{Kind: "User", Name: "system:serviceaccount:ns:robot"}, false, true},
		"AllOfNamespace": {v1alpha1.Subject{Kind: "Group", Name: "system:serviceaccounts:ns"}, false, true},
		"Unknown":        {v1alpha1.Subject{Kind: "Robot", Name: "hans"}, false, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := [2]bool{hans.Is(tc.subject), robot.Is(tc.subject)}; got != [2]bool{tc.hans, tc.robot} {
				t.Errorf("hans, robot: %v", got)
			}
		})
	}

	if got := policy.ServiceAccountGroups("hans"); got != nil {
		t.Errorf("groups of a person: %v", got)
	}

	if hans.Machine() || hans.ServiceAccount() || !robot.Machine() || !robot.ServiceAccount() || !(policy.User{Name: "system:kube-scheduler"}).Machine() ||
		(policy.User{Name: "system:admin"}).Machine() {
		t.Error("persons, components and service accounts are told apart by their names")
	}

	everybody := func(v1alpha1.Subject) bool { return true }
	if got := policy.Describe([]v1alpha1.Subject{{Kind: "Group", Name: "a"}, {Kind: "ServiceAccount", Name: "b", Namespace: "c"}}, everybody); got != "Group a, ServiceAccount c/b" {
		t.Errorf("Describe: %q", got)
	}

	if got := policy.Describe(nil, everybody); got != "nobody" {
		t.Errorf("Describe of nobody: %q", got)
	}
}

func TestASetFindsPoliciesByKind(t *testing.T) {
	all := make([]*policy.Policy, 0, 4)

	for _, s := range [][3]string{{"c", "A", ""}, {"a", "A", "g"}, {"b", "A", "h"}, {"d", "B", ""}} {
		all = append(all, compile(t, fmt.Sprintf(
			"{metadata: {name: %s}, spec: {match: {kind: %s, apiGroup: '%s', fields: [spec]}, allow: [{kind: B, mutations: [spec]}]}}", s[0], s[1], s[2])))
	}

	set := policy.NewSet(all...)

	for gk, want := range map[schema.GroupKind]string{
		{Group: "g", Kind: "A"}: "a,c", {Group: "h", Kind: "A"}: "b,c", {Kind: "A"}: "c", {Group: "x", Kind: "B"}: "d", {Kind: "C"}: "",
	} {
		names := make([]string, 0, len(all))
		for _, p := range set.For(gk) {
			names = append(names, p.Name())
		}

		if got := strings.Join(names, ","); got != want {
			t.Errorf("For(%v) = %q, want %q", gk, got, want)
		}
	}

	if set.ByName("a") == nil || set.ByName("x") != nil {
		t.Error("ByName finds what is there, and nothing else")
	}

	var none *policy.Set
	if none.For(schema.GroupKind{Kind: "A"}) != nil || none.ByName("a") != nil || (&policy.Set{}).ByName("a") != nil {
		t.Error("no set has no policies")
	}
}

func TestACacheCompilesAPolicyOnce(t *testing.T) {
	good := *parse(t, "{metadata: {name: good}, spec: {match: {kind: A, fields: [spec]}, allow: [{kind: B, mutations: [spec]}]}}")
	bad := *parse(t, "{metadata: {name: bad}, spec: {match: {kind: A, fields: [spec], cel: ['object.']}, allow: [{kind: B, mutations: [spec]}]}}")
	cache := policy.NewCache()

	first, errs := cache.Set([]v1alpha1.AllowancePolicy{good, bad})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `AllowancePolicy "bad": spec.match.cel[0]`) || first.ByName("bad") != nil {
		t.Fatalf("Set: %v", errs)
	}

	changed := *good.DeepCopy()
	changed.Spec.Match.Fields = []string{"status"}

	var wg sync.WaitGroup

	for range 8 {
		wg.Go(func() {
			again, errs := cache.Set([]v1alpha1.AllowancePolicy{bad, good})
			if len(errs) != 1 || again.ByName("good") != first.ByName("good") {
				t.Errorf("Set again: %v", errs)
			}

			if other, _ := cache.Set([]v1alpha1.AllowancePolicy{changed}); other.ByName("good") == first.ByName("good") {
				t.Error("a changed policy was not compiled again")
			}
		})
	}

	wg.Wait()
}

func TestAttestationsAreCapturedByTheirConcretePath(t *testing.T) {
	p := compile(t, `{metadata: {name: p}, spec: {match: {kind: A, fields: [spec], capture: ["metadata.annotations[jira]", "spec.l[*].image", spec.n, spec.m, spec.no, spec.long]},
		allow: [{kind: B, mutations: [spec]}]}}`)

	obj := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"jira": "INFRA-1"}},
		"spec": map[string]any{
			"l": []any{map[string]any{"image": "a"}, map[string]any{"image": "b"}}, "n": int64(3), "m": map[string]any{"x": true},
			"long": strings.Repeat("ü", 200),
		},
	}

	got := p.Attestations(obj)
	if long := got["spec.long"]; len(long) > 256 || !strings.HasSuffix(long, "ü...") {
		t.Errorf("a long value is %q", long)
	}

	delete(got, "spec.long")

	want := map[string]string{"metadata.annotations[jira]": "INFRA-1", "spec.l[0].image": "a", "spec.l[1].image": "b", "spec.n": "3", "spec.m": `{"x":true}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Attestations, -want, +got:\n%s", diff)
	}

	if got := p.Attestations(nil); got != nil {
		t.Errorf("Attestations of nothing: %v", got)
	}

	if !p.Names(change.Between(nil, map[string]any{"spec": int64(1)})[0]) || p.Names(change.Create()) {
		t.Error("the policy names changes below spec, and no creation")
	}

	merged := policy.MergeAttestations(map[string]string{"a": "1"}, map[string]string{"a": "2", "b": "3"})
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3"}, merged); diff != "" {
		t.Errorf("MergeAttestations, -want, +got:\n%s", diff)
	}
}

// TestAPolicyHasTheGenerationItIsGiven though another one had the same content.
func TestAPolicyHasTheGenerationItIsGiven(t *testing.T) {
	c := policy.NewCache()

	for _, generation := range []int64{1, 3, 1} {
		p := v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: generation}}
		p.Spec.Match = v1alpha1.Match{Kind: "Shop", Fields: []string{"spec.size"}}

		set, bad := c.Set([]v1alpha1.AllowancePolicy{p})
		if len(bad) > 0 || set.ByName("p").Generation() != generation {
			t.Errorf("%d, want %d: %v", set.ByName("p").Generation(), generation, bad)
		}
	}
}
