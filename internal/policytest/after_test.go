// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

const instanceObject = `apiVersion: example.org/v1
kind: Instance
metadata:
  name: db-i
  uid: instance-uid
  generation: 2
  ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: db-x, uid: xr-uid, controller: true}]
spec: {class: small}
`

// TestTheParentIsWhatAnotherScenarioLeaves from the Claim to the XR, and from that to what is composed.
func TestTheParentIsWhatAnotherScenarioLeaves(t *testing.T) {
	const (
		xr       = "Crossplane copies it.\n-- request.yaml --\nbase: xr\nparentAfter: claim\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {size: large}\n"
		instance = "And changes the instance.\n-- request.yaml --\nbase: instance\nparentAfter: ./xr.txtar\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {class: large}\n"
		allowed  = "-- want.yaml --\nallowed: true\nfindings: [{rule: Allowance, initiator: hans}]\n"
		not      = "-- want.yaml --\nallowed: false\n"
	)

	anna := strings.Replace(edited, "hans, groups: [platform-team]", "anna", 1)

	cases := map[string]map[string]string{
		"allowed":                {"t/claim.txtar": edited + "-- want.yaml --\nallowed: true\n", "t/xr.txtar": xr + allowed, "t/instance.txtar": instance + allowed},
		"not allowed":            {"t/claim.txtar": anna + not, "t/xr.txtar": xr + not, "t/instance.txtar": instance + not},
		"another change":         {"t/claim.txtar": edited + "-- want.yaml --\nallowed: true\n", "t/xr.txtar": strings.Replace(xr, "size: large", "engine: x", 1) + not},
		"has settled since then": {"t/claim.txtar": edited + "-- want.yaml --\nallowed: true\n", "t/xr.txtar": xr + "-- parent.yaml --\nstatus: {conditions: [{type: Synced, status: 'True', observedGeneration: 4}, {type: Ready, status: 'True', observedGeneration: 4}]}\nmetadata: {annotations: {kausality.io/allowances: null}}\n" + not},
		"a default gives way":    {"t/claim.txtar": strings.Replace(edited, "base: claim", "base: claim\nparent: \"\"", 1) + "-- want.yaml --\nallowed: true\n", "t/xr.txtar": xr + allowed, "t/defaults.yaml": "parent: none\n"},
		"deleted": {
			"t/xr.txtar": "Hans deletes it.\n-- request.yaml --\noperation: DELETE\nuser: {name: hans}\nbase: xr\n-- old.yaml --\nspec: {claimRef: null}\n-- policies.yaml --\n" + deletion +
				"-- want.yaml --\nallowed: true\n",
			"t/instance.txtar": "What it is made of goes.\n-- request.yaml --\noperation: DELETE\nbase: instance\nparentAfter: xr\n-- policies.yaml --\n" + deletion +
				"-- want.yaml --\nallowed: true\nfindings: [{field: delete, rule: Allowance, initiator: hans}]\n",
		},
	}

	for name, more := range cases {
		t.Run(name, func(t *testing.T) {
			more["t/base/instance.yaml"] = instanceObject
			check(t, files(more))
		})
	}
}

const deletion = `kind: AllowancePolicy
metadata: {name: end}
spec:
  match: {kind: XDatabase, fields: [delete]}
  subjects: [{kind: User, name: hans, mayInitiate: true}]
  allow: [{kind: Instance, mutations: [delete]}]
`

func TestNoParentIsLeft(t *testing.T) {
	const xr = "Crossplane copies it.\n-- request.yaml --\nbase: xr\nparentAfter: claim\n-- want.yaml --\n{}\n"

	cases := map[string]struct {
		claim, more, want string
	}{
		"none": {want: "t/xr.txtar:4: request.yaml: parentAfter: cannot read scenario: open t/claim.txtar: file does not exist"},
		"refused": {
			claim: edited, more: "-- policies.yaml --\nkind: Enforcement\nmetadata: {name: e}\nspec: {match: {resourceRules: [{apiGroups: ['*'], resources: ['*']}]}, validationActions: [Deny]}\n",
			want: `t/xr.txtar:4: request.yaml: parentAfter: t/claim.txtar: nothing is stored there: DatabaseClaim "db": change not allowed: ` +
				`spec.size: policy "claim": only Group platform-team may, not anna`,
		},
		"unreadable": {claim: "A.\n-- request.yaml --\nbases: x\n", want: "t/xr.txtar:4: request.yaml: parentAfter: t/claim.txtar:3: request.yaml: bases: unknown field"},
		"a gate":     {claim: "A.\n-- gate.yaml --\nbase: xr\n", want: "t/xr.txtar:4: request.yaml: parentAfter: t/claim.txtar: only a request leaves an object"},
		"itself": {
			claim: "A.\n-- request.yaml --\nbase: claim\nparentAfter: xr\n",
			want:  "t/xr.txtar:4: request.yaml: parentAfter: t/claim.txtar:4: request.yaml: parentAfter: it comes after itself: t/xr.txtar -> t/claim.txtar -> t/xr.txtar",
		},
		"another parent": {claim: edited, want: "t/xr.txtar:4: request.yaml: parentAfter: there is a parent, too: give one of them"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			more := map[string]string{"t/xr.txtar": xr, "t/defaults.yaml": "resource: databaseclaims\n"}
			if tc.claim != "" {
				more["t/claim.txtar"] = tc.claim + tc.more
			}

			if name == "refused" {
				more["t/claim.txtar"] = strings.Replace(more["t/claim.txtar"], "hans, groups: [platform-team]", "anna", 1)
			}

			if name == "another parent" {
				more["t/xr.txtar"] = strings.Replace(xr, "parentAfter", "parent: claim\nparentAfter", 1)
				tc.want = strings.Replace(tc.want, ":4:", ":5:", 1)
			}

			got := run(t, files(more))["t/xr"]
			if got.Status != policytest.Unreadable || got.Err.Error() != tc.want {
				t.Errorf("%s: %v\nwant %s", got.Status, got.Err, tc.want)
			}
		})
	}
}
