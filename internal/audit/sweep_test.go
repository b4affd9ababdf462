// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// noon is when the tests look.
func noon() time.Time { return time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) }

const (
	// instance is a managed resource that an XR of a Claim composes; %s are further
	// annotations.
	closedGate = `kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: '{v: 1, state: Closed, generation: 3, since: 2026-03-01T00:00:00Z}'`
	owner      = "ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: db-x, uid: xr, controller: true}]"

	xr = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: db-x, uid: xr},
  spec: {claimRef: {apiVersion: example.org/v1, kind: Database, namespace: team-a, name: db}, compositionRevisionRef: {name: runs-1},
    resourceRefs: [{apiVersion: rds.example.org/v1, kind: Instance, name: db-1}, {apiVersion: v1, kind: ConfigMap, name: db-c, namespace: apps}]}}`
	claim = `{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, uid: claim},
  spec: {resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x}}}`

	// listed is what the function tells the manager of an XR.
	listed = `, {type: KausalityState, status: 'False', reason: Held, message: '{"v":1,"progress":{"phase":"Settled"},"changes":[{"ref":
    {"apiVersion":"rds.example.org/v1","kind":"Instance","name":"db-1"},"field":"spec.forProvider.size","from":"1","to":"2","missing":"nobody asked for it"}]}'}`
	// held is the condition of an XR and its Claim.
	held = `{type: Kausality, status: 'False', reason: Held, lastTransitionTime: '2026-03-05T10:00:00Z',
    message: 'generation 3: 1 pending; 1 held: spec.forProvider.size of Instance db-1 (1 → 2); nobody asked for it'}`
)

// managed is a managed resource with some annotations, and what else is in its metadata.
func managed(annotations, metadata string) string {
	return "{apiVersion: rds.example.org/v1, kind: Instance, metadata: {name: db-1, uid: mr, generation: 3, annotations: {" + annotations + "}, " +
		metadata + "}, spec: {managementPolicies: [Observe, LateInitialize], forProvider: {size: 2}}}"
}

// TestWhatIsNotAsAskedForIsFound of each kind of object, and is said to whom it matters.
func TestWhatIsNotAsAskedForIsFound(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason  string
		objects []string
		opts    audit.Options
		gone    bool
		want    []string
	}{
		"AsAsked": {reason: "Nothing is said of what is as it was asked for.", objects: []string{xr, claim, managed(closedGate, owner)}},
		"Edited": {
			reason: "What somebody stored on a root who might not is said, with who it was and since when first.",
			objects: []string{`{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, annotations: {kausality.io/held:
  '[{field: spec.size, from: small, cause: {type: Edit, user: anna, since: 2026-03-04T00:00:00Z}, stored: {}}, {field: spec.password, masked: true, cause: {type: Edit, user: hans, since: 2026-03-03T00:00:00Z}, stored: {}}]'}}}`},
			want: []string{"stored-not-allowed high fail team-a Database team-a/db 2026-03-03: spec.size was saved by anna at 2026-03-04T00:00:00Z, and was small; " +
				"spec.password was saved by hans at 2026-03-03T00:00:00Z, and was (masked)"},
		},
		"Held": {
			reason:  "What the function holds is said once, of the XR and not of its Claim as well, to the Claim's namespace.",
			objects: []string{with(claim, held), with(xr, held+listed)},
			want: []string{"held low warn team-a XDatabase db-x 2026-03-05: spec.forProvider.size of Instance db-1 (1 → 2); " +
				"nobody asked for it"},
		},
		"HeldOfClaim": {
			reason:  "Who may not see XRs sees it on the Claim.",
			objects: []string{with(claim, held)},
			want: []string{"held low warn team-a Database team-a/db 2026-03-05: generation 3: 1 pending; 1 held: spec.forProvider.size of Instance db-1 (1 → 2); " +
				"nobody asked for it"},
		},
		"HeldForShort": {
			reason:  "What is held for less than one asks for is left out.",
			objects: []string{with(xr, held+listed)}, opts: audit.Options{HeldLonger: 3 * time.Hour},
		},
		"HeldForLong": {
			reason: "What is held for more than a day weighs more.", objects: []string{with(xr, held+listed)},
			opts: audit.Options{Now: noon().Add(48 * time.Hour), HeldLonger: 3 * time.Hour},
			want: []string{"held medium fail team-a XDatabase db-x 2026-03-05: spec.forProvider.size of Instance db-1 (1 → 2); " +
				"nobody asked for it"},
		},
		"HeldByWebhook": {
			reason: "What the webhook holds is said, with who asked; since when is not recorded, and no age leaves it out.",
			objects: []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {kausality.io/held:
  '[{field: spec.replicas, from: "1", to: "2", cause: {type: Edit, user: anna}, missing: no policy lets her}]'}}}`},
			opts: audit.Options{HeldLonger: time.Hour},
			want: []string{"held low warn shop Deployment shop/web : spec.replicas (1 → 2), requested by anna: no policy lets her"},
		},
		"Audit": {
			reason: "What mode Audit only reported was made.",
			objects: []string{with(xr, `{type: Kausality, status: 'False', reason: Held, lastTransitionTime: '2026-03-05T10:00:00Z',
    message: 'generation 3: settled; 1 held: spec.forProvider.size of Instance db-1 (1 → 2); nobody asked for it'},
    {type: KausalityState, status: 'True', reason: Allowed, message: '{"v":1,"progress":{"phase":"Settled"},"passed":[{"ref":
    {"apiVersion":"rds.example.org/v1","kind":"Instance","name":"db-1"},"field":"spec.forProvider.size","from":"1","to":"2","missing":"nobody asked for it"}]}'}`)},
			want: []string{"passed-not-allowed high fail team-a XDatabase db-x 2026-03-05: spec.forProvider.size of Instance db-1 (1 → 2); " +
				"nobody asked for it"},
		},
		"Open": {
			reason: "A gate that is open is said, with who asked for it.",
			objects: []string{xr, managed(`kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-03-05T11:30:00Z,
  allowances: [{relation: External, mutations: [Update], generation: 2, initiator: hans, id: "2.0", source: {type: Policy}}]}'`, owner)},
			want: []string{"gate-open low warn team-a Instance db-1 2026-03-05: its gate is open for Update, requested by hans, since 2026-03-05T11:30:00Z"},
		},
		"OpenForShort": {
			reason:  "Gates open and close all the time: what is open for a moment can be left out.",
			objects: []string{managed(`kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-03-05T11:59:00Z}'`, owner)},
			opts:    audit.Options{OpenLonger: audit.Grace},
		},
		"Overdue": {
			reason:  "One that is open for longer than it may be weighs more, whatever age is asked for.",
			objects: []string{xr, managed(`kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-03-05T10:30:00Z}'`, owner)},
			opts:    audit.Options{OpenLonger: 24 * time.Hour},
			want:    []string{"gate-overdue high fail team-a Instance db-1 2026-03-05: its gate is open since 2026-03-05T10:30:00Z: Synced= "},
		},
		"OverdueMasked": {
			reason: "What its provider says may quote a credential.",
			objects: []string{xr, with(managed(`kausality.io/gate: '{v: 1, state: Open, actions: [Update], generation: 3, since: 2026-03-05T10:30:00Z}'`, owner),
				`{type: Synced, status: 'False', reason: ReconcileError, message: 'cannot connect to postgres://admin:hunter2@db'}`)},
			want: []string{"gate-overdue high fail team-a Instance db-1 2026-03-05: its gate is open since 2026-03-05T10:30:00Z: Synced=False (masked)"},
		},
		"EditedMasked": {
			reason: "Earlier versions recorded the value last allowed of a credential.",
			objects: []string{`{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, annotations: {kausality.io/held:
  '[{field: spec.password, from: hunter2, cause: {type: Edit, user: hans, since: 2026-03-03T00:00:00Z}, stored: {}}]'}}, spec: {password: other}}`},
			want: []string{"stored-not-allowed high fail team-a Database team-a/db 2026-03-03: spec.password was saved by hans at 2026-03-03T00:00:00Z, and was (masked)"},
		},
		"Ungated": {
			reason:  "What has no gate any more is said.",
			objects: []string{managed(`kausality.io/gate: "v: 1\nstate: Ungated\n"`, owner)},
			want:    []string{"not-gated high warn  Instance db-1 : it is not gated, because its provider does not support management policies"},
		},
		"UngatedAudit": {
			reason:  "So is what has none because of mode Audit.",
			objects: []string{managed(`kausality.io/gate: "v: 1\nstate: Ungated\naudit: true\n"`, owner)},
			want:    []string{"not-gated high warn  Instance db-1 : it is not gated, because its Composition runs the function in mode Audit"},
		},
		"Former": {
			reason: "Nor is one of a form that is not read any more; what helps is one command.",
			objects: []string{managed(`kausality.io/gate: '{v: 1, state: Closed, generation: 3, since: 2026-03-05T11:30:00Z}', kausality.io/allowances:
  '[{relation: External, mutations: [Update], generation: 2, initiator: hans, policy: p}]'`, owner)},
			want: []string{`record-broken medium error  Instance db-1 : cannot parse annotation "kausality.io/allowances": [0]: source or id: ` +
				"it is of a form that this version does not know"},
		},
		"Broken": {
			reason:  "A record that cannot be read is no reason to say nothing.",
			objects: []string{managed(`kausality.io/gate: '{state: [}'`, owner)},
			want: []string{`record-broken medium error  Instance db-1 : cannot parse annotation "kausality.io/gate": ` +
				`error converting YAML to JSON: yaml: did not find expected node content`},
		},
		"OwnerGone": {
			reason: "What nobody owns any more stays, and is said.", objects: []string{managed(closedGate, owner)}, gone: true,
			want: []string{"owner-gone medium fail  Instance db-1 : its owner XDatabase db-x is gone"},
		},
		"OwnerNotSeenYet": {
			reason:  "What was made a moment ago may be seen before its owner is.",
			objects: []string{managed(closedGate, owner+", creationTimestamp: '2026-03-05T11:59:00Z'")}, gone: true,
			opts: audit.Options{Behind: audit.Grace},
		},
		"OwnerAskedFor": {
			reason:  "Where it was asked for, it is not there.",
			objects: []string{managed(closedGate, owner+", creationTimestamp: '2026-03-05T11:59:00Z'")}, gone: true,
			want: []string{"owner-gone medium fail  Instance db-1 : its owner XDatabase db-x is gone"},
		},
		"OwnerThere": {reason: "An owner of which nobody knows counts as there.", objects: []string{managed(closedGate, owner)}},
		"Going": {
			reason: "What may be deleted, and is, waits for its provider alone.",
			objects: []string{replace(managed(`kausality.io/gate: '{v: 1, state: Open, actions: [Delete], generation: 3, since: 2026-03-05T11:55:00Z}'`,
				owner+", deletionTimestamp: '2026-03-05T11:00:00Z'"), "LateInitialize", "Delete")},
			opts: audit.Options{OpenLonger: time.Hour}, gone: true,
		},
		"DeletionWaits": {
			reason:  "What is being deleted while its gate is closed waits for somebody.",
			objects: []string{managed(closedGate, owner+", deletionTimestamp: '2026-03-05T11:00:00Z'")},
			want:    []string{"deletion-waits medium fail  Instance db-1 2026-03-05: it is being deleted, and its gate is not open for Delete"},
		},
		"NoFunction": {
			reason:  "An XR without the function may mean it so.",
			objects: []string{`{apiVersion: example.org/v1, kind: XCache, metadata: {name: c, uid: c}, spec: {crossplane: {compositionRevisionRef: {name: plain-1}}}}`},
			want:    []string{"function-missing low warn  XCache c : it is composed by CompositionRevision plain-1, which has no step that runs function-kausality"},
		},
		"NoFunctionClaim": {
			reason:  "It does not where a policy is about it, or its Claim; and that is said to the Claim's namespace.",
			objects: []string{replace(xr, "runs-1", "plain-1")},
			want: []string{"function-missing high fail team-a XDatabase db-x : it, for Database team-a/db, is composed by CompositionRevision plain-1, " +
				"which has no step that runs function-kausality"},
		},
		"Unknown": {
			reason: "By which Composition an XR is composed may not be known, or not yet.", objects: []string{replace(xr, "runs-1", "other-1")},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			opts := tc.opts
			opts.Revisions = map[string]bool{"runs-1": true, "plain-1": false}
			opts.Gate = gate.Options{MaxOpen: time.Hour}

			if opts.Now.IsZero() {
				opts.Now = noon()
			}

			s := audit.NewSweep(opts, audit.Config{Admission: admission.Config{Policies: []v1alpha1.AllowancePolicy{inForce("databases", "Database")}}})
			for _, text := range tc.objects {
				s.Object(fixture.Parse(t, text))
			}

			gone := map[resource.Reference]bool{}
			for _, ref := range s.Owners() {
				gone[ref] = tc.gone
			}

			if diff := cmp.Diff(tc.want, lines(s.Findings(audit.Found{Gone: gone})), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnXRThatWasSeenIsThere and its UID need not be looked for.
func TestAnXRThatWasSeenIsThere(t *testing.T) {
	t.Parallel()

	s := audit.NewSweep(audit.Options{Now: noon()}, audit.Config{})
	s.Object(fixture.Parse(t, managed(closedGate, owner)))

	want := []resource.Reference{{APIVersion: "example.org/v1", Kind: "XDatabase", Name: "db-x", UID: "xr"}}
	if diff := cmp.Diff(want, s.Owners()); diff != "" {
		t.Errorf("before, -want, +got:\n%s", diff)
	}

	s.Object(fixture.Parse(t, xr))

	if got := s.Owners(); len(got) > 0 {
		t.Errorf("after: %v", got)
	}
}

// TestKindsThatNobodyIsAskedAboutAreFound among those that XRs compose, and those that
// people edit.
func TestKindsThatNobodyIsAskedAboutAreFound(t *testing.T) {
	t.Parallel()

	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}"

	deployments := kind.Served{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments"}
	configMaps := kind.Served{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"}
	instances := kind.Served{GVK: schema.GroupVersionKind{Group: "rds.example.org", Version: "v1", Kind: "Instance"}, Resource: "instances", Managed: true}
	unasked := "kind-not-governed medium warn  ConfigMap : XRs whose Composition runs the function compose it; no policy names it, " +
		"no Enforcement covers it, and it has no gates"
	warned := "kind-not-enforced medium warn  Deployment.apps : AllowancePolicies are about it, and no Enforcement with Deny or Hold covers it"

	cases := map[string]struct {
		reason string
		config admission.Config
		want   []string
	}{
		"Nothing": {reason: "A managed resource has a gate; what else XRs compose anybody may edit.", want: []string{unasked}},
		"Named": {
			reason: "What a policy names the webhook is asked about.",
			config: admission.Config{Policies: []v1alpha1.AllowancePolicy{allowing("ConfigMap")}},
		},
		"Covered": {
			reason: "So is what an Enforcement covers.", config: admission.Config{Enforcements: []v1alpha1.Enforcement{covering("", "configmaps", v1alpha1.ActionAudit)}},
			want: []string{"warn-only low warn  Enforcement all : its validationActions are [Audit]"},
		},
		"Shadow": {
			reason: "What is in Shadow mode names nothing.", config: admission.Config{Policies: []v1alpha1.AllowancePolicy{shadow(inForce("p", "ConfigMap"))}},
			want: []string{"shadow info warn  AllowancePolicy p : its enforcementMode is Shadow", unasked},
		},
		"Roots": {
			reason: "Of what people edit and policies are about, the webhook only warns without an Enforcement.",
			config: admission.Config{Policies: []v1alpha1.AllowancePolicy{inForce("p", "Deployment")}}, want: []string{unasked, warned},
		},
		"RootsWarned": {
			reason: "One that only warns is none.", config: admission.Config{
				Policies:     []v1alpha1.AllowancePolicy{inForce("p", "Deployment")},
				Enforcements: []v1alpha1.Enforcement{covering("apps", "*", v1alpha1.ActionWarn)},
			},
			want: []string{unasked, warned, "warn-only low warn  Enforcement all : its validationActions are [Warn]"},
		},
		"RootsDenied": {
			reason: "With Deny nothing is left to say.", config: admission.Config{
				Policies:     []v1alpha1.AllowancePolicy{inForce("p", "Deployment")},
				Enforcements: []v1alpha1.Enforcement{covering("apps", "*", v1alpha1.ActionDeny)},
			},
			want: []string{unasked},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := audit.NewSweep(audit.Options{Now: noon(), Revisions: map[string]bool{"runs-1": true}}, audit.Config{Admission: tc.config})
			for _, text := range []string{xr, claim, managed(closedGate, owner), deployment} {
				s.Object(fixture.Parse(t, text))
			}

			if diff := cmp.Diff([]schema.GroupVersionKind{configMaps.GVK, deployments.GVK, instances.GVK}, s.Kinds()); diff != "" {
				t.Errorf("%s\nkinds, -want, +got:\n%s", tc.reason, diff)
			}

			got := lines(s.Findings(audit.Found{Kinds: []kind.Served{deployments, configMaps, instances}}))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTheRemedyOfAnOrphanIsWhole names its owner, which has to be created paused before it can adopt.
func TestTheRemedyOfAnOrphanIsWhole(t *testing.T) {
	t.Parallel()

	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Instance", "metadata": map[string]any{"name": "db-1", "namespace": "shop"},
		"spec": map[string]any{"managementPolicies": []any{"Observe"}, "forProvider": map[string]any{}, "providerConfigRef": map[string]any{"name": "x"}},
	}}

	const want = `create XDatabase db-x again with the annotation crossplane.io/paused: "true", then ` +
		"kubectl kausality adopt Instance.example.org/db-1 -n shop --by XDatabase.acme.io/db-x; or kubectl kausality release Instance.example.org/db-1 -n shop"

	got := audit.Left(u, resource.Reference{APIVersion: "acme.io/v1", Kind: "XDatabase", Name: "db-x"}, true, time.Now())
	if len(got) != 1 || got[0].Remedy != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}
