// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	endingXR = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, namespace: shop, uid: x, generation: 3, deletionTimestamp: "2026-01-01T00:00:00Z",
		annotations: {kausality.io/initialized: '{"v":1}',
		kausality.io/allowances: "[{kind: Instance, mutation: delete, generation: 3, initiator: hans, policy: deletes, id: '3.0', source: {type: Deletion, name: deletes}, trace: [{kind: XDatabase, name: x, generation: 3, field: delete}]},
			{relation: External, mutations: [Delete], generation: 3, initiator: hans, policy: deletes, id: '3.0', source: {type: Deletion, name: deletes}, trace: [{kind: XDatabase, name: x, generation: 3, field: delete}]}]"}}}`
	endingMR = `{apiVersion: rds.example.org/v1, kind: Instance, metadata: {name: i, namespace: shop, uid: i, generation: 1, annotations: {
		kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: "{v: 1, state: Closed, generation: 1}"},
		ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: x, uid: x, controller: true}]},
		spec: {managementPolicies: [Observe, LateInitialize], forProvider: {size: 1}}}`
)

// TestWhatFollowsFromADeletionIsJudgedByTheNamespace has a policy about the
// child that selects by namespace: it adds what it says to the trace only where
// the namespace has the labels.
func TestWhatFollowsFromADeletionIsJudgedByTheNamespace(t *testing.T) {
	for labels, want := range map[string]int{"{env: prod}": 1, "{env: dev}": 0} {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}

		policies := make([]client.Object, 0, 2)

		for _, text := range []string{
			`{metadata: {name: deletes}, spec: {match: {kind: XDatabase, fields: [delete]}, allow: [{kind: Instance, mutations: [delete]}, {relation: External, mutations: [Delete]}]}}`,
			`{metadata: {name: below}, spec: {match: {kind: Instance, fields: [delete], namespaceSelector: {matchLabels: {env: prod}}}, allow: [{kind: Disk, mutations: [delete]}]}}`,
		} {
			p := &v1alpha1.AllowancePolicy{}
			if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
				t.Fatal(err)
			}

			policies = append(policies, p)
		}

		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(policies...).
			WithObjects(fixture.Parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: "+labels+"}}")).Build()

		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.FromAPIVersionAndKind("rds.example.org/v1", "Instance"), meta.RESTScopeNamespace)

		d := &judging.Judge{
			Inputs: current.Of(c), Live: c, Mapper: mapper, Now: func() time.Time { return time.Unix(0, 0) },
		}

		got, err := judge(t.Context(), d, fixture.Parse(t, endingMR), fixture.Parse(t, endingXR))
		if err != nil {
			t.Fatal(err)
		}

		if got.Object == nil {
			t.Fatalf("%s: nothing is given: %+v", labels, got)
		}

		n := 0

		var list []v1alpha1.Allowance
		if err := yaml.Unmarshal([]byte(got.Object.GetAnnotations()[v1alpha1.AnnotationAllowances]), &list); err != nil {
			t.Fatal(err)
		}

		for _, a := range list {
			if a.Kind == "Disk" {
				n++
			}
		}

		if n != want {
			t.Errorf("%s: %d allowances of the policy with the selector, want %d: %+v", labels, n, want, list)
		}
	}
}
