// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
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

// set compiles the AllowancePolicies among YAML documents.
func set(tb testing.TB, text string) *policy.Set {
	tb.Helper()

	var list []v1alpha1.AllowancePolicy

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		p := v1alpha1.AllowancePolicy{}

		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			tb.Fatal(err)
		}

		if p.Kind == "AllowancePolicy" {
			list = append(list, p)
		}
	}

	s, bad := policy.NewCache().Set(list)
	if len(bad) > 0 {
		tb.Fatal(bad)
	}

	return s
}

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
func ask(tb testing.TB, user policy.User, old, obj, parent string) decision.Request {
	tb.Helper()

	req := request(tb, user, old, obj, parent)
	req.Policies = referencePolicies(tb)

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

	want := []v1alpha1.Allowance{
		{
			Kind: "XDatabase", Mutation: "spec.size", Generation: 5, Initiator: "hans@example.com",
			Policy: "database-claim-to-xr", Trace: []v1alpha1.Hop{claimHop},
		},
		{
			Kind: "XDatabase", Mutation: "spec.engine", Generation: 5, Initiator: "hans@example.com",
			Policy: "database-claim-to-xr", Trace: []v1alpha1.Hop{claimHop},
		},
	}
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
	xrHop := v1alpha1.Hop{Kind: "XDatabase", Name: "my-database-xyz", Generation: 12, Field: "spec.size"}

	want = []v1alpha1.Allowance{
		{
			Kind: "RDSInstance", Mutation: "spec.forProvider.instanceClass", Generation: 12, Initiator: "hans@example.com",
			Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop},
		},
		{
			Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 12, Initiator: "hans@example.com",
			Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop},
		},
	}
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

	want = []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 8, Initiator: "hans@example.com",
		Policy: "xdatabase-to-rds", Trace: []v1alpha1.Hop{claimHop, xrHop, managedHop},
	}}
	if diff := cmp.Diff(want, allowancesOf(t, onManaged)); diff != "" {
		t.Fatalf("allowances of the managed resource, -want, +got:\n%s", diff)
	}

	if f := onManaged.Findings; len(f) != 1 || f[0].Rule != decision.RuleAllowance || f[0].Policy != "xdatabase-to-rds" {
		t.Errorf("findings: %+v", f)
	}
}

func TestTheReferencesClaimCarriesItsAllowancesInTheReferencesForm(t *testing.T) {
	d := decision.Decide(ask(t, hans(), claim, edit(t, claim, "size: small", "size: large"), ""))
	want := `- kind: XDatabase
  mutation: spec.size
  generation: 5
  initiator: hans@example.com
  policy: database-claim-to-xr
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
`

	if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); !strings.HasPrefix(got, want) {
		t.Errorf("allowances, -want (prefix), +got:\n%s", cmp.Diff(want, got))
	}
}

func TestAnExternalEntryReachesOnlyWhatItsOwnPolicyChanges(t *testing.T) {
	const hop = "[{kind: XDatabase, name: my-database-xyz, generation: 12, field: spec.size}]"

	parent := annotated(t, edit(t, xr, "generation: 11", "generation: 12"), `
    kausality.io/allowances: |
      - {kind: RDSInstance, mutation: spec.forProvider.instanceClass, generation: 12, initiator: hans, policy: xdatabase-to-rds, trace: `+hop+`}
      - {relation: External, mutations: [Update], generation: 12, initiator: hans, policy: xdatabase-to-rds, trace: `+hop+`}
      - {relation: External, mutations: [Delete, Create], generation: 12, initiator: hans, policy: xdatabase-to-rds-destructive, trace: `+hop+`}
      - {relation: External, mutations: [Update], generation: 10, initiator: anna, policy: xdatabase-to-rds, trace: `+hop+`}
`)

	d := decision.Decide(ask(t, crossplane(), rdsInstance, edit(t, rdsInstance, "db.t3.medium", "db.t3.large"), parent))
	got := allowancesOf(t, d)

	if len(got) != 1 || !cmp.Equal(got[0].Mutations, []string{"Update"}) || got[0].Initiator != "hans" {
		t.Errorf("allowances: %+v, want Update by hans alone", got)
	}

	// A change of labels alone takes nothing along.
	labelled := object(t, rdsInstance)
	labelled.SetLabels(map[string]string{"a": "b"})

	req := ask(t, crossplane(), rdsInstance, rdsInstance, parent)
	req.New = labelled

	if got := allowancesOf(t, decision.Decide(req)); len(got) != 0 {
		t.Errorf("allowances after a change that is not gated: %+v", got)
	}
}

func TestAnExpressionOfTheDestructivePolicyMustBeTrue(t *testing.T) {
	cases := map[string]struct {
		reason   string
		xr       string
		want     []string
		problems int
	}{
		"Recreate": {
			reason: "The XR says that it may be recreated.",
			xr:     annotated(t, xr, "    allow-recreate: \"true\"\n"), want: []string{"xdatabase-to-rds-destructive"},
		},
		"NoKey": {
			reason: "A missing annotation is an error of the expression: no match, no grant, and it is said.",
			xr:     xr, problems: 1,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent := annotated(t, edit(t, claim, "generation: 4", "generation: 5"),
				strings.ReplaceAll(claimAllowances, "mutation: spec.size", "mutation: spec.engine"))

			d := decision.Decide(ask(t, crossplane(), tc.xr, edit(t, tc.xr, "engine: postgres", "engine: mysql"), parent))
			if !d.Allowed() || len(d.Problems) != tc.problems {
				t.Fatalf("%s\nDecide: %+v, problems %v", tc.reason, d.Findings, d.Problems)
			}

			var got []string
			for _, a := range allowancesOf(t, d) {
				if allowance.External(a) {
					got = append(got, a.Policy)
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\npolicies that granted, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestARootsUnallowedChangeIsStoredWithAWarning(t *testing.T) {
	noTicket := edit(t, claim, "    jira: INFRA-23232\n", "")

	cases := map[string]struct {
		reason   string
		user     policy.User
		old, obj string
		want     []string
	}{
		"NoSubject": {
			reason: "anna may not start a chain.", user: anna(),
			old: claim, obj: edit(t, claim, "size: small", "size: large"),
			want: []string{`policy "database-claim-to-xr"`, "Group platform-team may", "nothing may follow"},
		},
		"NoTicket": {
			reason: "hans may, with a ticket.", user: hans(),
			old: noTicket, obj: edit(t, noTicket, "size: small", "size: large"),
			want: []string{`policy "database-claim-to-xr"`, `CEL "has(object.metadata.annotations['jira'])" is false`},
		},
		"Neither": {
			reason: "Both are said at once.", user: anna(),
			old: noTicket, obj: edit(t, noTicket, "size: small", "size: large"),
			want: []string{`user "anna@example.com" may not initiate it`, "is false"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decision.Decide(ask(t, tc.user, tc.old, tc.obj, ""))

			if why, denied := d.Denied(); denied || d.Action != "" {
				t.Errorf("%s\nDenied: %q, action %q; want the root accepted", tc.reason, why, d.Action)
			}

			if got := resource.String(d.Object.Object, "spec", "size"); got != "large" {
				t.Errorf("%s\nspec.size is %q", tc.reason, got)
			}

			if len(d.Findings) != 1 || d.Findings[0].Verdict != decision.Unallowed || len(d.Warnings) != 1 {
				t.Fatalf("%s\nfindings %+v, warnings %q", tc.reason, d.Findings, d.Warnings)
			}

			for _, w := range tc.want {
				if !strings.Contains(d.Warnings[0], w) {
					t.Errorf("%s\nwarning %q does not say %q", tc.reason, d.Warnings[0], w)
				}
			}

			if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); got != "" {
				t.Errorf("%s\nallowances: %q", tc.reason, got)
			}
		})
	}
}

func TestAChangeThatNoPolicyIsAboutIsNobodysBusiness(t *testing.T) {
	d := decision.Decide(ask(t, anna(), claim, edit(t, claim, "  size: small", "  size: small\n  backups: true"), ""))
	if len(d.Findings) != 1 || d.Findings[0].Verdict != decision.Ungoverned || len(d.Warnings) != 0 || !d.Allowed() {
		t.Errorf("findings %+v, warnings %q", d.Findings, d.Warnings)
	}
}

func TestDenyRefusesAndNamesFieldAndRemedy(t *testing.T) {
	req := ask(t, anna(), claim, edit(t, claim, "size: small", "size: large"), "")
	req.Action = v1alpha1.ActionDeny
	d := decision.Decide(req)

	why, denied := d.Denied()
	for _, w := range []string{"nobody asked for this change", "spec.size", `policy "database-claim-to-xr"`, "Group platform-team"} {
		if !denied || !strings.Contains(why, w) {
			t.Errorf("Denied: %q, %v; does not say %q", why, denied, w)
		}
	}
}

// anyPolicy lets anybody exercise what it allowed.
func anyPolicy(name string) string {
	return "\n{kind: AllowancePolicy, metadata: {name: " + name +
		"}, spec: {match: {kind: XDatabase, fields: [spec]}, allow: [{kind: RDSInstance, mutations: [spec]}]}}\n"
}

func TestTheFirstTraceByGrantingHopIsChosen(t *testing.T) {
	entry := func(policyName, kind, name, field, initiator string) string {
		return "      - {kind: RDSInstance, mutation: spec.forProvider, generation: 12, initiator: " + initiator + ", policy: " + policyName +
			", trace: [{kind: " + kind + ", name: " + name + ", generation: 12, field: " + field + "}]}\n"
	}

	cases := map[string]struct {
		reason     string
		allowances []string
		want       string
	}{
		"ByField": {
			reason:     "Of one object the first field.",
			allowances: []string{entry("p", "X", "a", "spec.b", "second"), entry("p", "X", "a", "spec.a", "first")}, want: "first",
		},
		"ByKind": {
			reason:     "The kind comes before the field.",
			allowances: []string{entry("p", "Y", "a", "spec.a", "second"), entry("p", "X", "a", "spec.b", "first")}, want: "first",
		},
		"ByPolicy": {
			reason:     "Then the policy.",
			allowances: []string{entry("q", "X", "a", "spec.a", "second"), entry("p", "X", "a", "spec.a", "first")}, want: "first",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 { // In either order.
				parent := annotated(t, edit(t, xr, "generation: 11", "generation: 12"),
					"    kausality.io/allowances: |\n"+strings.Join(tc.allowances, ""))
				req := ask(t, crossplane(), rdsInstance, edit(t, rdsInstance, "db.t3.medium", "db.t3.large"), parent)
				req.Policies = set(t, anyPolicy("p")+"---"+anyPolicy("q"))
				d := decision.Decide(req)

				entries, err := allowance.ParseTrace(d.Object)
				if err != nil || len(entries) != 1 || entries[0].Initiator != tc.want {
					t.Errorf("%s\ntrace: %+v, %v; want it by %q", tc.reason, entries, err, tc.want)
				}

				tc.allowances[0], tc.allowances[1] = tc.allowances[1], tc.allowances[0]
			}
		})
	}
}

func TestTooManyAllowancesAreRefused(t *testing.T) {
	req := ask(t, hans(), claim, edit(t, claim, "size: small", "size: large"), "")
	req.Policies = set(t, `
kind: AllowancePolicy
metadata: {name: wide}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: XDatabase, mutations: ["spec.`+strings.Repeat("a", v1alpha1.MaxAllowancesBytes)+`"]}]
`)
	d := decision.Decide(req)

	why, denied := d.Denied()
	if !denied || d.Refusal == nil || !strings.Contains(why, `DatabaseClaim "my-database"`) || !strings.Contains(why, "limit of 65536") {
		t.Errorf("Denied: %q, %v", why, denied)
	}
}

func TestTheRequestIsNotModified(t *testing.T) {
	parent := annotated(t, edit(t, claim, "generation: 4", "generation: 5"), claimAllowances)
	req := ask(t, crossplane(), xr, annotated(t, edit(t, xr, "size: small", "size: large", "engine: postgres", "engine: x"), claimAllowances), parent)
	before := []any{req.Old.DeepCopy(), req.New.DeepCopy(), req.Parent.DeepCopy()}

	decision.Decide(req)

	if diff := cmp.Diff(before, []any{req.Old, req.New, req.Parent}); diff != "" {
		t.Errorf("-before, +after:\n%s", diff)
	}
}

func TestCreatingAChildByTheAllowanceToCreateIsAllowedAsAWhole(t *testing.T) {
	parent := annotated(t, edit(t, xr, "generation: 11", "generation: 12"), `
    kausality.io/allowances: |
      - {kind: RDSInstance, mutation: create, generation: 12, initiator: hans, trace: [{kind: XDatabase, name: x, generation: 12, field: spec.size}]}
      - {relation: External, mutations: [Create], generation: 12, initiator: hans}
`)
	obj := edit(t, rdsInstance, "  generation: 7\n", "", "  annotations:\n    kausality.io/allowances: |\n      []\n", "")

	req := ask(t, crossplane(), "", obj, parent)
	req.Action = v1alpha1.ActionDeny
	d := decision.Decide(req)

	if why, denied := d.Denied(); denied {
		t.Fatalf("Denied: %q", why)
	}

	list := allowancesOf(t, d)
	if len(list) != 1 || !allowance.External(list[0]) || list[0].Generation != 1 || list[0].Trace[len(list[0].Trace)-1].Field != "create" {
		t.Errorf("allowances: %+v, want Create of generation 1", list)
	}

	if len(d.Warnings) > 0 {
		t.Errorf("warnings: %q", d.Warnings)
	}

	// Without it nothing of it is.
	req = ask(t, crossplane(), "", obj, xr)
	if d := decision.Decide(req); d.Allowed() {
		t.Errorf("Decide: %+v", d.Findings)
	}
}

func TestAnUpgradeIsAppliedOncePerObjectAndWhereItIsMeant(t *testing.T) {
	window := v1alpha1.UpgradeAllowance{}
	window.SetName("crossplane-upgrade-2024-01-06")
	window.Spec.ServiceAccount = crossplaneUser
	window.Spec.ValidFrom.Time = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	window.Spec.ValidUntil.Time = time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	window.Spec.OncePerObject = true
	window.Spec.Allow = []v1alpha1.Permission{{Kind: "RDSInstance", Relation: v1alpha1.RelationChild, Mutations: []string{"spec.forProvider"}}}

	cases := map[string]struct {
		reason string
		change func(*v1alpha1.UpgradeAllowance)
		old    string
		want   bool
	}{
		"First":     {reason: "The first write is applied.", old: rdsInstance, want: true},
		"Again":     {reason: "A second one is not.", old: edit(t, rdsInstance, "  annotations:", "  annotations:\n    kausality.io/last-upgrade: crossplane-upgrade-2024-01-06")},
		"Another":   {reason: "Another upgrade before does not matter.", old: edit(t, rdsInstance, "  annotations:", "  annotations:\n    kausality.io/last-upgrade: older"), want: true},
		"Group":     {reason: "Another group's kind is not meant.", old: rdsInstance, change: func(u *v1alpha1.UpgradeAllowance) { u.Spec.Allow[0].APIGroup = "other" }},
		"Namespace": {reason: "The namespace is named.", old: edit(t, rdsInstance, "  name: my-database-xyz-rds", "  name: my-database-xyz-rds\n  namespace: a"), change: func(u *v1alpha1.UpgradeAllowance) { u.Spec.Namespaces = []string{"a"} }, want: true},
		"Selected":  {reason: "The label is selected.", old: edit(t, rdsInstance, "  annotations:", "  labels: {composition: x}\n  annotations:"), change: selecting("composition", "x"), want: true},
		"Other":     {reason: "Another label is not.", old: edit(t, rdsInstance, "  annotations:", "  labels: {composition: y}\n  annotations:"), change: selecting("composition", "x")},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := *window.DeepCopy()
			if tc.change != nil {
				tc.change(&u)
			}

			later := *u.DeepCopy()
			later.SetName("z-later")

			req := ask(t, crossplane(), tc.old, edit(t, tc.old, "db.t3.medium", "db.t3.large", "engine: postgres}", "engine: mysql}"), xr)
			req.Upgrades = []v1alpha1.UpgradeAllowance{u}
			d := decision.Decide(req)

			if d.Allowed() != tc.want {
				t.Fatalf("%s\nDecide: %+v", tc.reason, d.Findings)
			}

			if got := resource.Annotation(d.Object, v1alpha1.AnnotationLastUpgrade); tc.want && got != u.GetName() {
				t.Errorf("%s\nlast-upgrade: %q", tc.reason, got)
			}

			req.Upgrades = []v1alpha1.UpgradeAllowance{later, u}
			if d := decision.Decide(req); tc.want && d.Findings[0].Policy != u.GetName() {
				t.Errorf("%s\nof several, %q was chosen", tc.reason, d.Findings[0].Policy)
			}
		})
	}
}

func selecting(key, value string) func(*v1alpha1.UpgradeAllowance) {
	return func(u *v1alpha1.UpgradeAllowance) {
		u.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}
