// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	approvedClaim = `
apiVersion: example.org/v1
kind: Database
metadata: {namespace: team-a, name: db, uid: claim-uid, generation: 3, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: huge, resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x}}
`
	approvedXR = `
apiVersion: example.org/v1
kind: XDatabase
metadata: {name: db-x, uid: xr-uid, generation: 5, labels: {crossplane.io/claim-name: db, crossplane.io/claim-namespace: team-a}, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: small, claimRef: {apiVersion: example.org/v1, kind: Database, namespace: team-a, name: db}}
`
	approvedPart = `
apiVersion: example.org/v1
kind: Part
metadata:
  name: part
  uid: part-uid
  generation: 2
  ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: db-x, uid: xr-uid, controller: true}]
spec: {quota: 1Gi}
`
)

func objectOf(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		tb.Fatal(err)
	}

	return u
}

// approvalOf is the allowance of an approval.
func approvalOf(parent *unstructured.Unstructured, kind, field, digest string) v1alpha1.Allowance {
	return fixture.Sourced(v1alpha1.Allowance{
		APIGroup: "example.org", Kind: kind, Mutation: field, Generation: parent.GetGeneration(), Initiator: "anna", Digest: digest, Approval: "cha-uid",
		Trace: []v1alpha1.Hop{{Kind: "ChangeApproval", Namespace: new("team-a"), Name: "database-db-1", Generation: 1, Field: digest}},
	})
}

// approve gives a parent the allowance of an approval.
func approve(t *testing.T, parent *unstructured.Unstructured, kind, field, digest string) v1alpha1.Allowance {
	t.Helper()

	a := approvalOf(parent, kind, field, digest)

	annotations := parent.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList([]v1alpha1.Allowance{a})
	parent.SetAnnotations(annotations)

	return a
}

func byCrossplane(old, is, parent *unstructured.Unstructured) request.Request {
	const crossplane = "system:serviceaccount:crossplane-system:crossplane"

	req := request.Request{Operation: request.OperationUpdate, Old: old, New: is, Parent: parent, User: policy.User{Name: crossplane}}
	req.Basis.Settings.Crossplane = crossplane

	return req
}

// TestWhatAClaimAsksForIsApprovedByItsValue where the webhook holds it.
func TestWhatAClaimAsksForIsApprovedByItsValue(t *testing.T) {
	claim, xr := objectOf(t, approvedClaim), objectOf(t, approvedXR)
	asked := objectOf(t, strings.Replace(approvedXR, "size: small", "size: huge", 1))

	held := decision.Decide(byCrossplane(xr, asked, claim))
	if len(held.Held) != 1 || held.Held[0].Digest == "" {
		t.Fatalf("held: %+v of %+v", held.Held, held)
	}

	a := approve(t, claim, "XDatabase", "spec.size", held.Held[0].Digest)

	d := decision.Decide(byCrossplane(xr, asked, claim))
	if f, _ := d.Lead(); !d.Allowed() || f.Approval != "cha-uid" || f.Digest != a.Digest || f.Initiator() != "anna" {
		t.Fatalf("what was approved is not allowed: %+v", d.Findings)
	}

	// It shows the use, and the same change is held from then on.
	used := d.Object.DeepCopy()
	if err := unstructured.SetNestedField(used.Object, "small", "spec", "size"); err != nil {
		t.Fatal(err)
	}

	again := used.DeepCopy()
	if err := unstructured.SetNestedField(again.Object, "huge", "spec", "size"); err != nil {
		t.Fatal(err)
	}

	if d := decision.Decide(byCrossplane(used, again, claim)); d.Allowed() {
		t.Error("an approval is used twice")
	}

	other := objectOf(t, strings.Replace(approvedXR, "size: small", "size: vast", 1))
	if d := decision.Decide(byCrossplane(xr, other, claim)); d.Allowed() {
		t.Error("another value is allowed")
	}

	restored := objectOf(t, strings.Replace(approvedXR, "uid: xr-uid", "uid: restored", 1))
	again = objectOf(t, strings.NewReplacer("uid: xr-uid", "uid: restored", "size: small", "size: huge").Replace(approvedXR))

	if d := decision.Decide(byCrossplane(restored, again, claim)); d.Allowed() {
		t.Error("another object of the name is allowed")
	}
}

// TestWhatTheFunctionLetThroughMayBeStoredInAnotherForm for the API server and other webhooks
// have changed it by the time that this one is asked.
func TestWhatTheFunctionLetThroughMayBeStoredInAnotherForm(t *testing.T) {
	xr, part := objectOf(t, approvedXR), objectOf(t, approvedPart)
	a := approve(t, xr, "Part", "spec.quota", "sha256:of-what-the-pipeline-wishes")

	asked := objectOf(t, strings.Replace(approvedPart, "1Gi", "2048Mi", 1))
	if d := decision.Decide(byCrossplane(part, asked, xr)); d.Allowed() {
		t.Fatal("without a record it is allowed")
	}

	asked.SetAnnotations(map[string]string{
		v1alpha1.AnnotationRecord: allowance.FormatRecord(v1alpha1.ObjectRecord{Used: []v1alpha1.Use{allowance.UseOf(a)}}),
	})

	d := decision.Decide(byCrossplane(part, asked, xr))
	if !d.Allowed() {
		t.Fatalf("what the function says it let through is not allowed: %+v", d.Findings)
	}

	// Nobody else can say so.
	forged := byCrossplane(part, asked, xr)
	forged.User = policy.User{Name: "mallory"}

	if d := decision.Decide(forged); d.Allowed() {
		t.Error("a person who writes the record is believed")
	}

	// Nor once it was used.
	if d := decision.Decide(byCrossplane(d.Object, func() *unstructured.Unstructured {
		u := d.Object.DeepCopy()
		_ = unstructured.SetNestedField(u.Object, "4Gi", "spec", "quota")

		return u
	}(), xr)); d.Allowed() {
		t.Error("a record of before lets another value through")
	}
}

// TestAPolicysAllowanceIsUsedBeforeAnApproval so that this serves where it is needed.
func TestAPolicysAllowanceIsUsedBeforeAnApproval(t *testing.T) {
	claim, xr := objectOf(t, approvedClaim), objectOf(t, approvedXR)
	asked := objectOf(t, strings.Replace(approvedXR, "size: small", "size: huge", 1))
	held := decision.Decide(byCrossplane(xr, asked, claim))
	a := approve(t, claim, "XDatabase", "spec.size", held.Held[0].Digest)

	claim.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: allowance.FormatList(fixture.AllSourced([]v1alpha1.Allowance{a, {
		Kind: "XDatabase", Mutation: "spec.size", Generation: 3, Initiator: "hans",
		Trace: []v1alpha1.Hop{{Kind: "Database", Name: "db", Generation: 3, Field: "spec.size"}},
	}}))})

	d := decision.Decide(byCrossplane(xr, asked, claim))
	if f, _ := d.Lead(); !d.Allowed() || f.Approval != "" || f.Initiator() != "hans" {
		t.Errorf("findings: %+v", d.Findings)
	}
}

// TestADigestSaysNothingOfWhatIsHidden for it could be guessed: neither of the value, nor of
// what stands beside it in a list.
func TestADigestSaysNothingOfWhatIsHidden(t *testing.T) {
	part := func(secret, beside string) *unstructured.Unstructured {
		u := objectOf(t, approvedPart)
		u.Object["spec"] = map[string]any{"password": secret, "args": []any{
			map[string]any{"password": secret}, map[string]any{"mode": beside},
		}}

		return u
	}
	digests := func(was, is *unstructured.Unstructured) string {
		req := byCrossplane(was, is, objectOf(t, approvedXR))
		req.Action = v1alpha1.ActionHold

		var out strings.Builder
		for _, h := range decision.Decide(req).Held {
			out.WriteString(h.Field + " " + h.Digest + "\n")
		}

		return out.String()
	}

	a, b := digests(part("one", "x"), part("two", "y")), digests(part("three", "x"), part("four", "y"))
	if a != b || !strings.Contains(a, "sha256:") {
		t.Errorf("digests differ by what is hidden:\n%s\n%s", a, b)
	}

	if c := digests(part("one", "x"), part("two", "z")); c == a {
		t.Errorf("digests do not differ by what is shown:\n%s", c)
	}
}

// TestWhatIsHeldBesideAnotherHasItsOwnDigest for by the object that is left another element stands
// in its place.
func TestWhatIsHeldBesideAnotherHasItsOwnDigest(t *testing.T) {
	const list = `[{name: a, port: "1"}, {name: b, port: "1"}, {name: c, port: "1"}]`

	xr := func(rules string) *unstructured.Unstructured {
		return objectOf(t, strings.Replace(approvedXR, "size: small", "rules: "+rules, 1))
	}
	digestOf := func(claim, asked *unstructured.Unstructured, field string) string {
		for _, h := range decision.Decide(byCrossplane(xr(list), asked, claim)).Held {
			if h.Field == field {
				return h.Digest
			}
		}

		return ""
	}

	alone := digestOf(objectOf(t, approvedClaim), xr(strings.Replace(list, `b, port: "1"`, `b, port: "2"`, 1)), "spec.rules[1].port")

	// That a goes is not allowed: it stays before x, and b is none of those that may be changed.
	claim := objectOf(t, approvedClaim)

	fields := []string{"spec.rules[0].name", "spec.rules[0].kind", "spec.rules[1].port"}
	allowances := make([]v1alpha1.Allowance, 0, len(fields))

	for _, field := range fields {
		allowances = append(allowances, fixture.Sourced(v1alpha1.Allowance{
			Kind: "XDatabase", Mutation: field, Generation: 3, Initiator: "hans",
			Trace: []v1alpha1.Hop{{Kind: "Database", Name: "db", Generation: 3, Field: "spec.size"}},
		}))
	}

	claim.SetAnnotations(map[string]string{
		v1alpha1.AnnotationAllowances: allowance.FormatList(allowances), v1alpha1.AnnotationInitialized: `{"v":1}`,
	})

	beside := digestOf(claim, xr(`[{name: x, kind: k}, {name: b, port: "2"}, {name: c, port: "1"}]`), "spec.rules[1].port")

	if alone == "" || alone != beside {
		t.Errorf("of one change: %q and %q", alone, beside)
	}
}

// TestAnApprovalOfSomethingHiddenIsOfAllThatIsShown beside it: only the hidden value may be another
// one.
func TestAnApprovalOfSomethingHiddenIsOfAllThatIsShown(t *testing.T) {
	digestOf := func(spec string) string {
		part := objectOf(t, strings.Replace(approvedPart, "{quota: 1Gi}", spec, 1))
		req := byCrossplane(nil, part, objectOf(t, approvedXR))
		req.Operation, req.Action, req.ComposedResource = request.OperationCreate, v1alpha1.ActionHold, "part"
		d := decision.Decide(req)
		lead, _ := d.Lead()

		if a := lead.Approvable(); a.Masked {
			return a.Digest
		}

		return ""
	}

	was := digestOf("{password: one, size: small}")
	if was == "" || digestOf("{password: two, size: small}") != was {
		t.Errorf("another password has another digest than %q", was)
	}

	if digestOf("{password: one, size: huge}") == was {
		t.Error("another size has the same digest")
	}
}
