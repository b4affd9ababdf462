// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// bucket is a managed resource with spec.size.
func bucket() (kinds []kind.Served, schemas typecheck.Schemas) {
	gvk := schema.GroupVersionKind{Group: "m", Version: "v1", Kind: "Bucket"}
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
	}
	s := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{"size": *spec.StringProperty()})})

	return []kind.Served{{GVK: gvk, Resource: "buckets", Managed: true}}, func(of schema.GroupVersionKind) *spec.Schema {
		if of != gvk {
			return nil
		}

		return &s
	}
}

func TestEachWarningHasWhatFoundIt(t *testing.T) {
	t.Parallel()

	kinds, schemas := bucket()

	cases := map[string]struct {
		reason string
		policy string
		given  []v1alpha1.Permission
		want   map[string]string
	}{
		"Schema": {
			reason: "Paths, expressions and when a gate closes are compared with the schema.",
			policy: `{spec: {match: {kind: Bucket, fields: [spec.sice], cel: ["object.spec.sice == 'x'"]}, subjects: [{kind: Group, name: g, mayInitiate: true}],
  allow: [{relation: External, mutations: [update]}], gate: {closeWhen: "object.spec.sice == 'x'"}}}`,
			want: map[string]string{
				"spec.match.fields[0]": typecheck.UnknownPath, "spec.match.cel[0]": typecheck.CELType,
				"spec.gate.closeWhen": typecheck.CELType, "spec.allow[0].mutations[0]": typecheck.ExternalVerb,
			},
		},
		"Reach": {
			reason: "Nobody may initiate, and nothing else gives it.",
			policy: `{spec: {match: {kind: Bucket, fields: [spec.size]}, allow: [{relation: External, mutations: [Update]}]}}`,
			want:   map[string]string{"spec.subjects": typecheck.Unreachable},
		},
		"Start": {
			reason: "What else gives it is not asked about who asks.",
			policy: `{spec: {match: {kind: Bucket, fields: [spec.size], cel: ["request.userInfo.username == 'x'"]}, allow: [{relation: External, mutations: [Update]}]}}`,
			given:  []v1alpha1.Permission{{Kind: "Bucket", Mutations: []string{"spec"}}},
			want:   map[string]string{"spec.match.cel[0]": typecheck.MetBelow},
		},
		"StartOfItself": {
			reason: "It leads to itself.",
			policy: `{spec: {match: {kind: Bucket, fields: [spec.size], cel: ["now > timestamp('2026-01-01T00:00:00Z')"]},
				subjects: [{kind: Group, name: devs, mayInitiate: true}], allow: [{kind: Bucket, mutations: [spec.size]}]}}`,
			want: map[string]string{"spec.match.cel[0]": typecheck.MetBelow},
		},
		"Approval": {
			reason: "A creation waits for no approvals.",
			policy: `{spec: {approval: {required: 2}, match: {kind: Bucket, fields: [spec.size, create]}, subjects: [{kind: Group, name: devs, mayInitiate: true}],
				allow: [{relation: External, mutations: [Update]}]}}`,
			want: map[string]string{"spec.match.fields[1]": typecheck.ApprovalIdle},
		},
		"Broken": {
			reason: "Of what does not compile nothing is said.",
			policy: `{spec: {match: {kind: Bucket, fields: [spec.sice, "spec["]}, allow: []}}`,
			want:   map[string]string{},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := map[string]string{}
			p := &fixture.Documents[v1alpha1.AllowancePolicy](t, tc.policy)[0]
			p.Name = "p"

			for _, r := range typecheck.Policy(p, kinds, schemas, typecheck.GrantsOf(nil, []v1alpha1.UpgradeAllowance{
				{Spec: v1alpha1.UpgradeAllowanceSpec{Allow: tc.given}},
			})) {
				got[r.Field] = r.Rule
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGrantsAreThoseOfOthersInForce(t *testing.T) {
	t.Parallel()

	policies := fixture.Documents[v1alpha1.AllowancePolicy](
		t,
		`{metadata: {name: own}, spec: {match: {kind: Bucket, fields: [spec]}, allow: [{kind: Bucket, mutations: [a]}]}}`,
		`{metadata: {name: other}, spec: {match: {kind: X, fields: [spec]}, allow: [{kind: Bucket, mutations: [b]}, {kind: Y, mutations: [c]}]}}`,
		`{metadata: {name: shadow}, spec: {enforcementMode: Shadow, match: {kind: X, fields: [spec]}, allow: [{kind: Bucket, mutations: [d]}]}}`,
	)
	windows := fixture.Documents[v1alpha1.UpgradeAllowance](t, `{spec: {allow: [{kind: Bucket, mutations: [e]}]}}`)

	var got []string
	for _, perm := range typecheck.GrantsOf(policies, windows).Besides(&policies[0]) {
		got = append(got, perm.Mutations...)
	}

	if diff := cmp.Diff([]string{"b", "e"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestASubjectOfABindingIsWhoeverItNames(t *testing.T) {
	t.Parallel()

	never := typecheck.NeverByBinding(func(user string) bool { return user != "system:serviceaccount:a:b" && user != "machine" })

	for text, want := range map[string]bool{
		`{kind: User, name: machine}`: true, `{kind: User, name: anna}`: false, `{kind: Group, name: machine}`: false,
		`{kind: ServiceAccount, namespace: a, name: b}`: true, `{kind: ServiceAccount, namespace: a, name: c}`: false,
	} {
		if got := never(fixture.Documents[v1alpha1.Subject](t, text)[0]); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
