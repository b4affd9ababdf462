// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// serveDatabases has the API server serve the example's kinds. They stay, as
// other tests of the package work with them.
func serveDatabases(t *testing.T, c client.Client) {
	t.Helper()

	raw, err := os.ReadFile("../../examples/claim-with-ticket/xrd.yaml")
	if err != nil {
		t.Fatal(err)
	}

	for _, u := range world.Parse(t, raw) {
		if err := c.Create(t.Context(), u); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func TestAnExpressionThatDoesNotFitItsKindIsReported(t *testing.T) {
	c := world.Connect(t, running.Config())
	serveDatabases(t, c)

	role := right.RoleOfParameters(schema.GroupResource{Resource: "configmaps"})
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), &role)); err != nil {
		t.Fatal(err)
	}

	cases := []struct {
		name   string
		reason string
		object string
		want   []v1alpha1.TypeCheckingWarning
	}{
		{
			// It comes first: with its warning the schemas are there, and no
			// warning means that nothing is wrong.
			name:   "Typo",
			reason: "A field that the Claim has not is named, and the policy is in force all the same.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: typo}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size], cel: ["object.spec.size != ''", "object.spec.sizee == 'x'"]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []v1alpha1.TypeCheckingWarning{{
				Field: "spec.match.cel[1]", Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:12: undefined field 'sizee'",
			}},
		},
		{
			name:   "CompositeResource",
			reason: "What Crossplane adds to an XR is in its schema too.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: typo-xr}
spec:
  match: {apiGroup: example.org, kind: XDatabase, fields: [spec.size], cel: ["object.spec.claimRef.nam == 'x'"]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data]}]`,
			want: []v1alpha1.TypeCheckingWarning{{
				Field: "spec.match.cel[0]", Warning: "example.org/v1alpha1, kind XDatabase: 1:21: undefined field 'nam'",
			}},
		},
		{
			name:   "BuiltInKind",
			reason: "Kinds of the API server itself are checked as well.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: typo-configmap}
spec:
  match: {kind: ConfigMap, fields: [data], cel: ["object.daata.x == 'y'", "object.data.x == 'y'", "has(object.metadata.labels['x'])"]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data]}]`,
			want: []v1alpha1.TypeCheckingWarning{{
				Field: "spec.match.cel[0]", Warning: "v1, kind ConfigMap: 1:7: undefined field 'daata'",
			}},
		},
		{
			name:   "EveryExpression",
			reason: "Variables, conditions, their messages, and what they read of parameters.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: typo-everywhere}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  paramRef: {name: sizes}
  match:
    kind: DatabaseClaim
    fields: [spec.size]
    variables: [{name: size, expression: "object.spec.sice"}, {name: sizes, expression: "params.daata.sizes"}]
    matchConditions:
    - {name: engine, expression: "object.spec.engin == 'x'", messageExpression: "'not ' + object.spec.engin"}
    - {name: listed, expression: "variables.size in params.data.sizes"}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.variables[0].expression", Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:12: undefined field 'sice'"},
				{Field: "spec.match.variables[1].expression", Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:7: undefined field 'daata'"},
				{Field: "spec.match.matchConditions[0].expression", Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:12: undefined field 'engin'"},
				{
					Field:   "spec.match.matchConditions[0].messageExpression",
					Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:21: undefined field 'engin'",
				},
				{
					Field:   "spec.match.matchConditions[1].expression",
					Warning: "example.org/v1alpha1, kind DatabaseClaim: 1:16: found no matching overload for '@in' applied to '(dyn, string)'",
				},
			},
		},
		{
			name:   "CloseWhen",
			reason: "What closes a gate is checked against the managed resources.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: typo-close-when}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size]}
  gate: {closeWhen: "object.status.atProvide.manifest.data.size == 'x'"}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{apiGroup: kubernetes.crossplane.io, kind: Object, mutations: [spec.forProvider]}, {relation: External, mutations: [Update]}]`,
			want: []v1alpha1.TypeCheckingWarning{
				{Field: "spec.gate.closeWhen", Warning: "kubernetes.crossplane.io/v1alpha2, kind Object: 1:14: undefined field 'atProvide'"},
			},
		},
		{
			name:   "Right",
			reason: "What is right is not warned of.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: right}
spec:
  match:
    kind: DatabaseClaim
    fields: [spec.size]
    cel:
    - "object.spec.size == 'small' && oldObject.spec['size'] == 'large'"
    - "has(object.metadata.annotations['jira']) && object.metadata.labels['x'] == 'y'"
    - "object.spec.resourceRef.name == 'x' && object.status.conditions.exists(c, c.type == 'Ready')"
    - "request.userInfo.username != '' && namespaceObject.metadata.labels['env'] == 'prod'"
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
		},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			u := world.Parse(t, []byte(tc.object))[0]
			if err := create(t.Context(), t, c, u); err != nil {
				t.Fatal(err)
			}

			got := &v1alpha1.AllowancePolicy{}
			err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience.Limit, true, func(ctx context.Context) (bool, error) {
				if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
					return false, err
				}

				*got = v1alpha1.AllowancePolicy{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, got); err != nil {
					return false, err
				}

				ready := meta.IsStatusConditionTrue(got.Status.Conditions, v1alpha1.ConditionReady)

				return ready && cmp.Equal(tc.want, got.Status.TypeChecking), nil
			})
			if err != nil {
				t.Errorf("%s\n%v; conditions %+v; type checking: -want, +got:\n%s", tc.reason, err, got.Status.Conditions,
					cmp.Diff(tc.want, got.Status.TypeChecking))
			}
		})
	}
}
