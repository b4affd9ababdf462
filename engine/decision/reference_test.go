// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// referencePolicies are those of the reference, word for word.
func referencePolicies(tb testing.TB) *policy.Set {
	tb.Helper()

	raw, err := os.ReadFile("../policy/testdata/reference.yaml")
	if err != nil {
		tb.Fatal(err)
	}

	return set(tb, string(raw))
}

const claim = `
apiVersion: example.org/v1alpha1
kind: DatabaseClaim
metadata:
  name: my-database
  namespace: default
  generation: 4
  annotations:
    jira: INFRA-23232
    kausality.io/initialized: '{"v":1}'
spec:
  size: small
  engine: postgres
  resourceRef: {apiVersion: example.org/v1alpha1, kind: XDatabase, name: my-database-xyz}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 4}
  - {type: Ready, status: "True", observedGeneration: 4}
`

const xr = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  generation: 11
  annotations:
    kausality.io/initialized: '{"v":1}'
spec:
  size: small
  engine: postgres
  claimRef: {apiVersion: example.org/v1alpha1, kind: DatabaseClaim, namespace: default, name: my-database}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 11}
  - {type: Ready, status: "True", observedGeneration: 11}
  - {type: Kausality, status: "True", reason: Allowed, message: "generation 11: settled"}
  - {type: KausalityState, status: "True", reason: Allowed, message: '{"v":1,"progress":{"phase":"Settled","generation":11,"settled":{"generation":11}}}'}
`

const rdsInstance = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata:
  name: my-database-xyz-rds
  generation: 7
  annotations:
    kausality.io/allowances: |
      []
  ownerReferences:
  - {apiVersion: example.org/v1alpha1, kind: XDatabase, name: my-database-xyz, uid: u1, controller: true, blockOwnerDeletion: true}
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {instanceClass: db.t3.medium, engine: postgres}
`

// ask is a request under the reference's policies.
func ask(tb testing.TB, user policy.User, old, obj, parent string) request.Request {
	tb.Helper()

	req := requestFor(tb, user, old, obj, parent)
	req.Basis.Policies = referencePolicies(tb)

	return req
}

func allowancesOf(t *testing.T, d decision.Decision) []v1alpha1.Allowance {
	t.Helper()

	list, err := allowance.Parse(d.Object)
	if err != nil {
		t.Fatal(err)
	}

	return list
}

func TestTheReferencesChainRunsFromClaimToManagedResource(t *testing.T) {
	// 1. hans changes the Claim.
	onClaim := decision.Decide(ask(t, hans(), claim, edit(t, claim, "size: small", "size: large"), ""))
	claimHop := v1alpha1.Hop{
		Kind: "DatabaseClaim", Name: "my-database", Generation: 5, Field: "spec.size",
		Attestations: map[string]string{"metadata.annotations[jira]": "INFRA-23232"},
	}

	want := fixture.AllSourced([]v1alpha1.Allowance{
		{
			Kind: "XDatabase", Mutation: "spec.size", Generation: 5, Initiator: "hans@example.com",
			Policy: "database-claim-to-xr", Trace: []v1alpha1.Hop{claimHop},
		},
		{
			Kind: "XDatabase", Mutation: "spec.engine", Generation: 5, Initiator: "hans@example.com",
			Policy: "database-claim-to-xr", Trace: []v1alpha1.Hop{claimHop},
		},
	})
	if diff := cmp.Diff(want, allowancesOf(t, onClaim)); diff != "" {
		t.Fatalf("allowances of the Claim, -want, +got:\n%s", diff)
	}

	// 2. Crossplane carries it to the XR, with all annotations of the Claim.
	stored := onClaim.Object.DeepCopy()
	stored.SetGeneration(5)

	asked := object(t, edit(t, xr, "size: small", "size: large"))
	asked.SetAnnotations(stored.GetAnnotations())

	req := ask(t, crossplane(), xr, xr, "")
	req.New, req.Parent = asked, stored
	onXR := decision.Decide(req)
	claimHop.Namespace = new("default") // The XR is in none.
	xrHop := v1alpha1.Hop{Kind: "XDatabase", Name: "my-database-xyz", Generation: 12, Field: "spec.size"}

	want = fixture.AllSourced([]v1alpha1.Allowance{
		{
			Kind: "RDSInstance", Mutation: "spec.forProvider.instanceClass", Generation: 12, Initiator: "hans@example.com",
			Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop},
		},
		{
			Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 12, Initiator: "hans@example.com",
			Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop},
		},
	})
	if diff := cmp.Diff(want, allowancesOf(t, onXR)); diff != "" {
		t.Fatalf("allowances of the XR, -want, +got:\n%s", diff)
	}

	// 3. Crossplane composes the managed resource.
	stored = onXR.Object.DeepCopy()
	stored.SetGeneration(12)

	req = ask(t, crossplane(), rdsInstance, edit(t, rdsInstance, "db.t3.medium", "db.t3.large"), "")
	req.Parent = stored
	onManaged := decision.Decide(req)
	managedHop := v1alpha1.Hop{Kind: "RDSInstance", Name: "my-database-xyz-rds", Generation: 8, Field: "spec.forProvider.instanceClass"}

	want = fixture.AllSourced([]v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 8, Initiator: "hans@example.com",
		Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop, managedHop},
	}})
	if diff := cmp.Diff(want, allowancesOf(t, onManaged)); diff != "" {
		t.Fatalf("allowances of the managed resource, -want, +got:\n%s", diff)
	}

	if f := onManaged.Findings; len(f) != 1 || f[0].Rule != finding.RuleAllowance || f[0].Policy != "xdatabase-to-rds" {
		t.Errorf("findings: %+v", f)
	}
}
