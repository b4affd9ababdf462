// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const freshXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  generation: 1
  annotations:
    kausality.io/trace: |
      - field: spec.size
        generation: 1
        initiator: anna
        trace: [{kind: XDatabase, name: my-database-xyz, generation: 1, field: spec.size}]
      - field: create
        generation: 1
        initiator: hans
        trace: [{kind: DatabaseClaim, name: my-database, generation: 1, field: create}, {kind: XDatabase, name: my-database-xyz, generation: 1, field: create}]
spec: {size: small, resourceRefs: []}
`

func TestWhatAParentsPhaseAllows(t *testing.T) {
	steady := edit(t, freshXR, "  annotations:", "  annotations:\n    kausality.io/initialized: \"true\"")
	deleting := edit(t, steady, "  generation: 1\n", "  generation: 1\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n")
	larger := edit(t, rdsInstance, "db.t3.medium", "db.t3.large")
	configMap := edit(t, rdsInstance, "forProvider:", "data:")
	granted := edit(t, rdsInstance, "      []\n", "      [{relation: External, mutations: [Delete], generation: 7, initiator: hans, trace: [{kind: RDSInstance, name: my-database-xyz-rds, generation: 7, field: delete}]}]\n")
	gc := policy.User{Name: "system:serviceaccount:kube-system:generic-garbage-collector"}

	cases := map[string]struct {
		reason           string
		user             policy.User
		old, obj, parent string
		gone             bool
		rule             decision.Rule
		initiator        string
	}{
		"FirstUpdate":  {reason: "A parent that was never ready builds up its children.", user: crossplane(), old: rdsInstance, obj: larger, parent: freshXR, rule: decision.RuleInitializing, initiator: "hans"},
		"FirstCreate":  {reason: "And makes them.", user: crossplane(), obj: rdsInstance, parent: freshXR, rule: decision.RuleInitializing, initiator: "hans"},
		"ByAPerson":    {reason: "A person does not build up children.", user: anna(), old: rdsInstance, obj: larger, parent: freshXR},
		"FirstDelete":  {reason: "Building up is not deleting.", user: crossplane(), old: rdsInstance, parent: freshXR},
		"Steady":       {reason: "A steady parent allows nothing by itself.", user: crossplane(), old: rdsInstance, obj: larger, parent: steady},
		"SteadyCreate": {reason: "Nor a creation.", user: crossplane(), obj: rdsInstance, parent: steady},
		"SteadyDelete": {reason: "Nor a deletion.", user: crossplane(), old: rdsInstance, parent: steady},
		"ReadyOnce": {
			reason: "Ready=True is steady before anybody marks it.", user: crossplane(), old: rdsInstance, obj: larger,
			parent: freshXR + "status: {conditions: [{type: Ready, status: \"True\"}]}\n",
		},
		"NotReady": {
			reason: "Ready=False, never marked, is not.", user: crossplane(), old: rdsInstance, obj: larger,
			parent: freshXR + "status: {conditions: [{type: Ready, status: \"False\"}, {type: Synced, status: \"True\", observedGeneration: 1}]}\n",
			rule:   decision.RuleInitializing, initiator: "hans",
		},
		"DeletingDelete": {reason: "A managed resource goes only with a grant.", user: gc, old: rdsInstance, parent: deleting},
		"DeletingOther":  {reason: "What else a parent leaves behind may go.", user: gc, old: configMap, parent: deleting, rule: decision.RuleDeleting},
		"DeletingGrant":  {reason: "The resource's own grant will do.", user: gc, old: granted, parent: deleting, rule: decision.RuleDeleting},
		"DeletingOrphan": {reason: "So will the wish to orphan.", user: gc, old: edit(t, rdsInstance, "spec:\n", "spec:\n  deletionPolicy: Orphan\n"), parent: deleting, rule: decision.RuleDeleting},
		"DeletingUpdate": {reason: "A parent that goes changes nothing.", user: crossplane(), old: rdsInstance, obj: larger, parent: deleting},
		"GoneDelete":     {reason: "Without a record a managed resource stays.", user: gc, old: rdsInstance, gone: true},
		"GoneOther":      {reason: "What else a parent left behind may go.", user: gc, old: configMap, gone: true, rule: decision.RuleDeleting},
		"GoneGrant":      {reason: "With one it goes.", user: gc, old: granted, gone: true, rule: decision.RuleDeleting},
		"GoneUpdate":     {reason: "An orphan is nobody's to change.", user: crossplane(), old: rdsInstance, obj: larger, gone: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := ask(t, tc.user, tc.old, tc.obj, tc.parent)
			req.ParentGone = tc.gone
			d := decision.Decide(req)

			if len(d.Findings) == 0 || len(d.Problems) > 0 {
				t.Fatalf("%s\nDecide: %+v, problems %v", tc.reason, d.Findings, d.Problems)
			}

			for _, f := range d.Findings {
				if f.Rule != tc.rule || (f.Verdict == decision.Allowed) != (tc.rule != "") || (f.Missing() == "") != (tc.rule != "") {
					t.Errorf("%s\nfinding: %+v", tc.reason, f)
				}
			}

			if tc.initiator == "" || d.Object == nil || tc.obj == "" {
				return
			}

			entries, err := allowance.ParseTrace(d.Object)
			if err != nil || len(entries) != 1 || entries[0].Initiator != tc.initiator || len(entries[0].Trace) != 3 {
				t.Errorf("%s\ntrace: %+v, %v; want the parent's creation and this object", tc.reason, entries, err)
			}

			if list := allowancesOf(t, d); len(list) != 1 || !cmp.Equal(list[0].Mutations, []string{"Create", "Update"}) {
				t.Errorf("%s\nallowances: %+v, want Create and Update", tc.reason, list)
			}
		})
	}
}

func TestMachineryIsCrossplanesAlone(t *testing.T) {
	fields := map[string]string{
		"resourceRef":                "  resourceRef: {kind: a, name: b}\n",
		"resourceRefs":               "  resourceRefs: [{kind: a}]\n",
		"crossplane":                 "  crossplane: {compositionRef: {name: a}}\n",
		"compositionRef":             "  compositionRef: {name: a}\n",
		"compositionRevisionRef":     "  compositionRevisionRef: {name: a}\n",
		"writeConnectionSecretToRef": "  writeConnectionSecretToRef: {name: a}\n",
	}

	for name, line := range fields {
		t.Run(name, func(t *testing.T) {
			obj := edit(t, xr, "  size: small\n", "  size: small\n"+line)
			if d := decision.Decide(ask(t, crossplane(), xr, obj, claim)); len(d.Findings) != 0 {
				t.Errorf("by Crossplane: %+v", d.Findings)
			}

			if d := decision.Decide(ask(t, anna(), xr, obj, claim)); d.Allowed() {
				t.Errorf("by a person: %+v", d.Findings)
			}
		})
	}

	// Even where a policy is about all of metadata.
	req := ask(t, crossplane(), xr, edit(t, xr, "  generation: 11\n", "  generation: 11\n  finalizers: [a]\n"), claim)
	req.Policies = set(t, "{kind: AllowancePolicy, metadata: {name: p}, spec: {match: {kind: XDatabase, fields: [metadata]}, allow: [{kind: A, mutations: [spec]}]}}")

	if d := decision.Decide(req); len(d.Findings) != 0 {
		t.Errorf("a finalizer by Crossplane: %+v", d.Findings)
	}

	req.User = anna()
	if d := decision.Decide(req); len(d.Findings) != 1 {
		t.Errorf("a finalizer by a person: %+v", d.Findings)
	}
}

func TestOnlyAProviderInitializesLate(t *testing.T) {
	added := func(s string) string {
		return edit(t, rdsInstance, "engine: postgres}", "engine: postgres, zone: a}\n"+s)
	}
	provider := policy.User{Name: providerUser}

	cases := map[string]struct {
		reason   string
		user     policy.User
		old, obj string
		want     int
	}{
		"ForProvider":  {"A field that was unset.", provider, rdsInstance, added(""), 0},
		"InitProvider": {"In either place.", provider, rdsInstance, added("  initProvider: {a: b}"), 0},
		"Elsewhere":    {"Nowhere else.", provider, rdsInstance, added("  other: {a: b}"), 1},
		"Removed":      {"Taking away is not filling in.", provider, added(""), rdsInstance, 1},
		"Changed":      {"Nor is changing.", provider, added(""), edit(t, added(""), "zone: a", "zone: b"), 1},
		"APerson":      {"A person is no provider.", anna(), rdsInstance, added(""), 1},
		"Crossplane":   {"Nor is Crossplane.", crossplane(), rdsInstance, added(""), 1},
		"NotInForce":   {"Only where LateInitialize is in force.", provider, edit(t, rdsInstance, "Observe, LateInitialize", "Observe"), edit(t, added(""), "Observe, LateInitialize", "Observe"), 1},
		"All":          {"It is part of everything.", provider, edit(t, rdsInstance, "Observe, LateInitialize", "'*'"), edit(t, added(""), "Observe, LateInitialize", "'*'"), 0},
		"Default":      {"And of the default.", provider, edit(t, rdsInstance, "  managementPolicies: [Observe, LateInitialize]\n", ""), edit(t, added(""), "  managementPolicies: [Observe, LateInitialize]\n", ""), 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := decision.Decide(ask(t, tc.user, tc.old, tc.obj, xr)); len(d.Findings) != tc.want {
				t.Errorf("%s\nfindings: %+v, want %d", tc.reason, d.Findings, tc.want)
			}
		})
	}
}

func TestAnObjectDoesNotFreeItselfFromItsController(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   []string
		want   bool
	}{
		"Dropped":      {"Without a controller it would be a root.", []string{", controller: true", ""}, false},
		"Released":     {"Or with one that is none.", []string{"controller: true", "controller: false"}, false},
		"Another":      {"Another controller allows other things.", []string{"uid: u1", "uid: u2"}, false},
		"Version":      {"The same owner at another version of its API is the same.", []string{"example.org/v1alpha1, kind: XDatabase", "example.org/v1beta1, kind: XDatabase"}, true},
		"Block":        {"What does not say who controls is free.", []string{", blockOwnerDeletion: true", ""}, true},
		"AnotherOwner": {"So is an owner beside it.", []string{"  - {apiVersion", "  - {apiVersion: v1, kind: A, name: a, uid: u3}\n  - {apiVersion"}, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := ask(t, crossplane(), rdsInstance, edit(t, rdsInstance, tc.edit...), xr)
			req.Action = v1alpha1.ActionHold
			d := decision.Decide(req)

			if d.Allowed() != tc.want {
				t.Fatalf("%s\nfindings: %+v", tc.reason, d.Findings)
			}

			if tc.want {
				return
			}

			if diff := cmp.Diff(req.Old.GetOwnerReferences(), d.Object.GetOwnerReferences()); diff != "" {
				t.Errorf("%s\nowner references when held, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	// A Claim's XR has no owner reference, but claimRef.
	d := decision.Decide(ask(t, anna(), xr, edit(t, xr, "name: my-database}", "name: other}"), claim))
	if d.Allowed() || resource.String(d.Object.Object, "spec", "claimRef", "name") != "my-database" {
		t.Errorf("claimRef: %+v", d.Findings)
	}
}

func TestMetadataCountsWhereAPolicyNamesIt(t *testing.T) {
	policies := set(t, `
kind: AllowancePolicy
metadata: {name: restart}
spec:
  match: {kind: Deployment, fields: ["metadata.annotations[restart]"]}
  subjects: [{kind: User, name: hans@example.com, mayInitiate: true}]
  allow: [{kind: ReplicaSet, mutations: [spec]}]
`)

	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  generation: 3\n  annotations: {restart: \"1\", other: \"1\"}\nspec: {replicas: 1}\n"

	req := request(t, hans(), deployment, edit(t, deployment, `restart: "1"`, `restart: "2"`), "")
	req.Policies = policies
	d := decision.Decide(req)

	// The API server gives a Deployment a new generation for an annotation.
	if list := allowancesOf(t, d); len(list) != 1 || list[0].Generation != 4 || list[0].Trace[0].Field != "metadata.annotations.restart" {
		t.Errorf("allowances: %+v", list)
	}

	req = request(t, anna(), deployment, edit(t, deployment, `other: "1"`, `other: "2"`), "")
	req.Policies = policies

	if d := decision.Decide(req); len(d.Findings) != 0 {
		t.Errorf("findings: %+v", d.Findings)
	}
}

func TestAnAllowanceIsExercisedByThoseItsPolicyNames(t *testing.T) {
	larger := edit(t, rdsInstance, "db.t3.medium", "db.t3.large")

	cases := map[string]struct {
		reason   string
		subjects string
		user     policy.User
		want     bool
	}{
		"Listed":      {"The one listed may.", "[{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}]", crossplane(), true},
		"Other":       {"Another may not.", "[{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}]", anna(), false},
		"Initiator":   {"Nor may who starts chains.", "[{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}, {kind: Group, name: app-team, mayInitiate: true}]", anna(), false},
		"NobodyNamed": {"Where only initiators are listed, anybody may.", "[{kind: Group, name: platform-team, mayInitiate: true}]", crossplane(), true},
		"None":        {"Where nobody is listed, anybody may.", "[]", anna(), true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent := annotated(t, edit(t, xr, "generation: 11", "generation: 12"), `
    kausality.io/allowances: |
      - {kind: RDSInstance, mutation: spec.forProvider, generation: 12, initiator: hans, policy: p, trace: [{kind: X, name: x, generation: 12, field: spec.size}]}
`)
			req := request(t, tc.user, rdsInstance, larger, parent)
			req.Policies = set(t, "{kind: AllowancePolicy, metadata: {name: p}, spec: {match: {kind: XDatabase, fields: [spec]}, subjects: "+tc.subjects+", allow: [{kind: RDSInstance, mutations: [spec]}]}}")

			d := decision.Decide(req)
			if d.Allowed() != tc.want {
				t.Errorf("%s\nfindings: %+v", tc.reason, d.Findings)
			}

			if !tc.want && !strings.Contains(d.Findings[0].Missing(), "ServiceAccount crossplane-system/crossplane may") {
				t.Errorf("%s\nmissing: %q", tc.reason, d.Findings[0].Missing())
			}
		})
	}
}

func TestUpkeepMarksAndPrunes(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           map[string]string
	}{
		"Nothing": {"A parent on its way is left alone.", freshXR, nil},
		"Ready": {
			"The first time it is ready it is marked.", freshXR + "status: {conditions: [{type: Ready, status: \"True\"}]}\n",
			map[string]string{v1alpha1.AnnotationInitialized: "true"},
		},
		"Served": {
			"Allowances that have served go.",
			annotated(t, edit(t, claim, "generation: 4\n  annotations", "generation: 5\n  annotations", "observedGeneration: 4", "observedGeneration: 5"), claimAllowances),
			map[string]string{v1alpha1.AnnotationAllowances: "[]\n"},
		},
		"Serving":   {"Others stay.", annotated(t, claim, claimAllowances), nil},
		"Malformed": {"What cannot be read is left for its reader to report.", annotated(t, claim, "    kausality.io/allowances: \"- [\"\n"), nil},
		"Deployment": {
			"A write of ours would be a new generation.",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Available, status: \"True\"}]}}", nil,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decision.Upkeep(object(t, tc.object))); diff != "" {
				t.Errorf("%s\nUpkeep, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAGrantToDeleteIsStampedOnWhatItReaches(t *testing.T) {
	parent := annotated(t, edit(t, xr, "generation: 11", "generation: 12"), `
    kausality.io/allowances: |
      - {kind: RDSInstance, mutation: delete, generation: 12, initiator: hans, trace: [{kind: X, name: x, generation: 12, field: spec.size}]}
      - {relation: External, mutations: [Delete], generation: 12, initiator: hans}
`)
	d := decision.Decide(ask(t, crossplane(), rdsInstance, "", parent))

	if !d.Allowed() || d.Object == nil {
		t.Fatalf("Decide: %+v", d)
	}

	got, err := allowance.Parse(d.Object)
	want := []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{"Delete"}, Generation: 7, Initiator: "hans",
		Trace: []v1alpha1.Hop{{Kind: "X", Name: "x", Generation: 12, Field: "spec.size"}, {Kind: "RDSInstance", Name: "my-database-xyz-rds", Generation: 7, Field: "delete"}},
	}}

	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("allowances: %v, -want, +got:\n%s", err, diff)
	}

	if d := decision.Decide(ask(t, crossplane(), rdsInstance, "", xr)); d.Allowed() || d.Object != nil {
		t.Errorf("without a grant: %+v", d)
	}
}
