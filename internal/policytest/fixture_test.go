// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// Policies about a Claim and about the XR that is made of it.
const (
	claimPolicy = `apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: claim}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size], cel: ["has(object.metadata.annotations.ticket)"]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]
`
	xrPolicy = `apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: xr}
spec:
  match: {kind: XDatabase, fields: [spec.size]}
  allow: [{kind: Instance, mutations: [spec.class]}]
`
	claimObject = `apiVersion: example.org/v1
kind: DatabaseClaim
metadata: {name: db, namespace: shop, uid: claim-uid, generation: 3, annotations: {ticket: T-1, kausality.io/initialized: '{"v":1}'}}
spec: {size: small, resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x}}
status: {conditions: [{type: Synced, status: "True", observedGeneration: 3}, {type: Ready, status: "True", observedGeneration: 3}]}
`
	xrObject = `apiVersion: example.org/v1
kind: XDatabase
metadata: {name: db-x, uid: xr-uid, generation: 5, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: small, claimRef: {apiVersion: example.org/v1, kind: DatabaseClaim, namespace: shop, name: db}}
status: {conditions: [{type: Synced, status: "True", observedGeneration: 5}, {type: Ready, status: "True", observedGeneration: 5}]}
`
)

// edited is who edits the Claim with a ticket.
const edited = `Hans may change the size.
-- request.yaml --
user: {name: hans, groups: [platform-team]}
base: claim
policies: [../policies.yaml]
-- new.yaml --
spec: {size: large}
`

// files are those of a test: t/NAME.txtar is scenario NAME.
func files(more map[string]string) fstest.MapFS {
	out := fstest.MapFS{}

	for name, text := range map[string]string{
		"policies.yaml": claimPolicy + "---\n" + xrPolicy, "t/base/claim.yaml": claimObject, "t/base/xr.yaml": xrObject,
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}

	for name, text := range more {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}

	return out
}

// run tests what is in t, and returns the results by name.
func run(t *testing.T, in fstest.MapFS) map[string]policytest.Result {
	t.Helper()

	results, err := policytest.Run(t.Context(), in, []string{"t"}, policytest.Options{Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]policytest.Result{}
	for _, r := range results {
		out[r.Name] = r
	}

	return out
}

// check tests one scenario, t/x.txtar, and fails unless it passes.
func check(t *testing.T, in fstest.MapFS) {
	t.Helper()

	for name, r := range run(t, in) {
		if r.Status != policytest.Passed {
			t.Errorf("%s: %s: %v, %v, %v\n%s", name, r.Status, r.Err, r.Differences, r.Missing, r.Decided)
		}
	}
}
