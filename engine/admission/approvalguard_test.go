// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// asked is a request as a guard sees it.
type asked struct {
	operation, subresource string
	// user is who makes it, as the API server's request has it: YAML.
	user string
	// old and obj are parts of the objects; nil for none.
	old, obj []string
}

// goesThrough reports whether a guard lets a request through, as the API server decides it.
func (a asked) goesThrough(t *testing.T, guard *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	t.Helper()

	request := map[string]any{"operation": a.operation, "userInfo": merged(t, []string{a.user})}
	if a.subresource != "" {
		request["subResource"] = a.subresource
	}

	old, obj := merged(t, a.old), merged(t, a.obj)

	eval := func(text string) bool {
		text = strings.ReplaceAll(text, mayWithdraw, "request.userInfo.username == 'withdrawer'") // Nobody answers for the authorizer here.

		e, err := expression.Compile(text)
		if err != nil {
			t.Fatal(err)
		}

		ok, _, err := e.Eval(expression.Input{Object: obj, OldObject: old, Request: func() map[string]any { return request }})
		if err != nil {
			t.Errorf("cannot evaluate %s: %v", text, err)
		}

		return ok
	}

	for _, c := range guard.Spec.MatchConditions {
		if !eval(c.Expression) {
			return true
		}
	}

	for _, v := range guard.Spec.Validations {
		if !eval(v.Expression) {
			return false
		}
	}

	return true
}

func ours() Options { return Options{Crossplane: inCrossplane + "crossplane", Manager: ourManager} }

func named(user string) string { return "{username: '" + user + "'}" }

func TestAChangeApprovalSaysWhoMadeIt(t *testing.T) {
	const (
		berta  = `{username: berta, uid: "7", groups: [dba, "system:authenticated"], extra: {"example.org/session": [a, b]}}`
		signed = `spec: {pendingChange: db, approver: ` + berta + `}`
		bare   = `spec: {pendingChange: db, approver: {username: berta}}`
		gone   = `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a]}`
	)

	for name, tc := range map[string]struct {
		asked

		reason string
		want   bool
	}{
		"Signed":        {reason: "As the webhook writes it.", asked: asked{operation: "CREATE", user: berta, obj: []string{signed}}, want: true},
		"Bare":          {reason: "The API server may know a name alone.", asked: asked{operation: "CREATE", user: named("berta"), obj: []string{bare}}, want: true},
		"EmptyInstead":  {reason: "What is empty is absent.", asked: asked{operation: "CREATE", user: `{username: berta, groups: []}`, obj: []string{bare}}, want: true},
		"NotAsked":      {reason: "The webhook was not asked.", asked: asked{operation: "CREATE", user: berta, obj: []string{`spec: {pendingChange: db}`}}, want: false},
		"OtherName":     {reason: "Forged.", asked: asked{operation: "CREATE", user: named("anna"), obj: []string{bare}}, want: false},
		"MoreGroups":    {reason: "Forged.", asked: asked{operation: "CREATE", user: named("berta"), obj: []string{`spec: {approver: {username: berta, groups: ["system:masters"]}}`}}, want: false},
		"FewerGroups":   {reason: "It is to be all of them.", asked: asked{operation: "CREATE", user: berta, obj: []string{bare}}, want: false},
		"OtherGroups":   {reason: "Forged.", asked: asked{operation: "CREATE", user: berta, obj: []string{signed, `spec: {approver: {groups: [admins, "system:authenticated"]}}`}}, want: false},
		"OtherUID":      {reason: "Another user of that name.", asked: asked{operation: "CREATE", user: berta, obj: []string{signed, `spec: {approver: {uid: "8"}}`}}, want: false},
		"InventedUID":   {reason: "Forged.", asked: asked{operation: "CREATE", user: named("berta"), obj: []string{`spec: {approver: {username: berta, uid: "8"}}`}}, want: false},
		"MoreExtra":     {reason: "Forged.", asked: asked{operation: "CREATE", user: berta, obj: []string{signed, `spec: {approver: {extra: {scopes: [all]}}}`}}, want: false},
		"OtherExtra":    {reason: "Forged.", asked: asked{operation: "CREATE", user: berta, obj: []string{signed, `spec: {approver: {extra: {"example.org/session": [a]}}}`}}, want: false},
		"InventedExtra": {reason: "Forged.", asked: asked{operation: "CREATE", user: named("berta"), obj: []string{`spec: {approver: {username: berta, extra: {scopes: [all]}}}`}}, want: false},
		"Finalizer":     {reason: "Anybody may take a finalizer off.", asked: asked{operation: "UPDATE", user: named("anna"), old: []string{signed, gone}, obj: []string{signed}}, want: true},
		"Edited":        {reason: "Nobody changes what was decided.", asked: asked{operation: "UPDATE", user: berta, old: []string{signed}, obj: []string{signed, `spec: {reason: x}`}}, want: false},
		"EditedByUs":    {reason: "Nor do we.", asked: asked{operation: "UPDATE", user: named(ourManager), old: []string{signed}, obj: []string{signed, `spec: {reason: x}`}}, want: false},
		"Resigned":      {reason: "Nor who made it.", asked: asked{operation: "UPDATE", user: named("anna"), old: []string{signed}, obj: []string{signed, `spec: {approver: {username: anna}}`}}, want: false},
		"Status":        {reason: "We say what became of it.", asked: asked{operation: "UPDATE", subresource: "status", user: named(ourManager), old: []string{signed}, obj: []string{signed, `status: {changes: [{digest: a}]}`}}, want: true},
		"Withdrawn":     {reason: "Who made it may.", asked: asked{operation: "DELETE", user: named("berta"), old: []string{signed}}, want: true},
		"Taken":         {reason: "Nobody else does.", asked: asked{operation: "DELETE", user: named("anna"), old: []string{signed}}, want: false},
		"TakenGladly":   {reason: "But who has the right.", asked: asked{operation: "DELETE", user: named("withdrawer"), old: []string{signed}}, want: true},
		"Rejects": {reason: "A rejection lasts.", asked: asked{operation: "DELETE", user: named("anna"), old: []string{
			signed, `status: {changes: [{digest: a, state: Rejected}, {digest: b, state: Applied}]}`,
		}}, want: false},
		"Ended": {reason: "What is done anybody clears away.", asked: asked{operation: "DELETE", user: named("anna"), old: []string{
			signed, `status: {changes: [{digest: a, state: Applied}, {digest: b, state: Superseded}, {digest: c, state: Expired}]}`,
		}}, want: true},
		"Nobodys":   {reason: "It grants nothing.", asked: asked{operation: "DELETE", user: named("anna"), old: []string{`spec: {pendingChange: db}`}}, want: true},
		"Old":       {reason: "We clear away.", asked: asked{operation: "DELETE", user: named(ourManager), old: []string{signed}}, want: true},
		"Namespace": {reason: "Its namespace goes.", asked: asked{operation: "DELETE", user: named(policy.NamespaceController), old: []string{signed}}, want: true},
		"StatusOfTheirs": {reason: "Nobody else does.", asked: asked{
			operation: "UPDATE", subresource: "status", user: berta, old: []string{signed}, obj: []string{signed, `status: {changes: [{digest: a}]}`},
		}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.goesThrough(t, ours().ApprovalGuard().Policy); got != tc.want {
				t.Errorf("%s\nGoes through: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOnlyTheManagerWritesPendingChanges(t *testing.T) {
	const (
		list = `{metadata: {labels: {a: b}}, spec: {objectRef: {name: db}}}`
		held = `status: {digest: x}`
		gone = `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [foregroundDeletion], ownerReferences: [{uid: a}]}`
	)

	for name, tc := range map[string]struct {
		asked

		reason string
		want   bool
	}{
		"Made":         {reason: "We make it.", asked: asked{operation: "CREATE", user: named(ourManager), obj: []string{list}}, want: true},
		"MadeByHand":   {reason: "Nobody else does.", asked: asked{operation: "CREATE", user: named("anna"), obj: []string{list}}, want: false},
		"Status":       {reason: "We write what is held.", asked: asked{operation: "UPDATE", subresource: "status", user: named(ourManager), old: []string{list}, obj: []string{list, held}}, want: true},
		"StatusByHand": {reason: "Nobody else does.", asked: asked{operation: "UPDATE", subresource: "status", user: named("anna"), old: []string{list}, obj: []string{list, held}}, want: false},
		"StatusOfOthers": {reason: "Not even without a change.", asked: asked{
			operation: "UPDATE", subresource: "status", user: named(inCrossplane + "crossplane"), old: []string{list}, obj: []string{list},
		}, want: false},
		"Collected": {reason: "The garbage collector takes its finalizer off.", asked: asked{
			operation: "UPDATE", user: named(policy.GarbageCollector), old: []string{list, gone}, obj: []string{list},
		}, want: true},
		"Freed":         {reason: "So may a person.", asked: asked{operation: "UPDATE", user: named("anna"), old: []string{list, gone}, obj: []string{list}}, want: true},
		"Annotated":     {reason: "It says nothing that we do not.", asked: asked{operation: "UPDATE", user: named("anna"), old: []string{list}, obj: []string{list, `metadata: {annotations: {a: b}}`}}, want: false},
		"Labelled":      {reason: "It says nothing that we do not.", asked: asked{operation: "UPDATE", user: named("anna"), old: []string{list}, obj: []string{list, `metadata: {labels: {c: d}}`}}, want: false},
		"AnnotatedByUs": {reason: "We may.", asked: asked{operation: "UPDATE", user: named(ourManager), old: []string{list}, obj: []string{list, `metadata: {annotations: {a: b}}`}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.goesThrough(t, ours().PendingGuard().Policy); got != tc.want {
				t.Errorf("%s\nGoes through: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOnlyKausalityAndCrossplaneSayWhatIsHeld(t *testing.T) {
	const (
		ready  = `{type: Ready, status: "True"}`
		synced = `{type: Synced, status: "True"}`
		own    = `{type: Kausality, status: "False", message: held}`
		list   = `{type: KausalityState, status: "False", message: "{}"}`
		forged = `{type: KausalityState, status: "False", message: "{changes: []}"}`
	)

	status := func(conditions string) []string { return []string{`status: {conditions: [` + conditions + `]}`} }
	anna, crossplane := named("anna"), named(inCrossplane+"crossplane")
	both := own + "," + list + "," + ready

	for name, tc := range map[string]struct {
		reason   string
		user     string
		old, obj []string
		want     bool
	}{
		"Function":        {"The function writes by Crossplane.", crossplane, status(own), status(own + "," + list), true},
		"Manager":         {"We do.", named(ourManager), status(both), status(ready), true},
		"Other":           {"Other conditions are anybody's.", anna, status(both), status(own + "," + list + "," + synced), true},
		"Reordered":       {"In any order.", anna, status(both), status(ready + "," + list + "," + own), true},
		"NoStatus":        {"There need be no status.", anna, []string{`spec: {}`}, []string{`spec: {}`}, true},
		"NoConditions":    {"Nor conditions.", anna, []string{`status: {}`}, []string{`status: {size: 1}`}, true},
		"First":           {"The first ones of others.", anna, []string{`spec: {}`}, status(ready), true},
		"NoType":          {"Nor a type.", anna, status(both), status(both + ", {status: x}"), true},
		"Forged":          {"What approvers see is not theirs.", anna, status(both), status(own + "," + forged + "," + ready), false},
		"Invented":        {"Nor where there was none.", anna, []string{`spec: {}`}, status(forged), false},
		"Removed":         {"Nor to take away.", anna, status(both), status(own + "," + ready), false},
		"AllRemoved":      {"With all of the status.", anna, status(both), []string{`spec: {}`}, false},
		"ConditionItself": {"Nor the other one.", anna, status(both), status(list + "," + ready), false},
		"Twice":           {"Nor twice.", anna, status(both), status(both + "," + list), false},
		"Provider":        {"A provider is not Crossplane.", named(inCrossplane + "provider-aws"), status(both), status(ready), false},
	} {
		t.Run(name, func(t *testing.T) {
			guard := ours().HeldGuard(fixture.ServedKinds()).Policy
			request := asked{operation: "UPDATE", subresource: "status", user: tc.user, old: tc.old, obj: tc.obj}

			if got := request.goesThrough(t, guard); got != tc.want {
				t.Errorf("%s\nGoes through: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTheGuardsOfApprovalsAreAboutNoDeletion(t *testing.T) {
	claim := kind.Served{GVK: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "DatabaseClaim"}, Resource: "databaseclaims", Crossplane: true}

	for name, tc := range map[string]struct {
		guard Guard
		want  []string
	}{
		"Approval": {ours().ApprovalGuard(), []string{"kausality.io/changeapprovals CREATE,UPDATE,DELETE", "kausality.io/changeapprovals/status UPDATE"}},
		"Pending":  {ours().PendingGuard(), []string{"kausality.io/pendingchanges CREATE,UPDATE", "kausality.io/pendingchanges/status UPDATE"}},
		"Held": {
			ours().HeldGuard(append(fixture.ServedKinds(), claim)), []string{"example.org/databaseclaims/status,xdatabases/status UPDATE"},
		},
		"HeldOfNothing": {ours().HeldGuard(nil), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := tc.guard.Policy.Spec.MatchConstraints.ResourceRules

			plain := make([]admissionregistrationv1.RuleWithOperations, len(rules))
			for i := range rules {
				plain[i] = rules[i].RuleWithOperations
			}

			if diff := cmp.Diff(tc.want, fixture.Asked(plain)); diff != "" {
				t.Errorf("Rules, -want, +got:\n%s", diff)
			}

			if *tc.guard.Policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
				t.Error("it fails open")
			}
		})
	}
}

func TestChangeApprovalsAreSignedInEveryNamespace(t *testing.T) {
	c := ours()
	c.Namespace, c.Server = "kausality-system", Server{URL: "https://127.0.0.1", ApprovePath: "/approve"}

	mutating, _, err := c.Configurations(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	if len(mutating.Webhooks) != 1 {
		t.Fatalf("%d webhooks where nothing is governed, want 1", len(mutating.Webhooks))
	}

	w := mutating.Webhooks[0]
	if diff := cmp.Diff([]string{"kausality.io/changeapprovals CREATE"}, fixture.Asked(w.Rules)); diff != "" {
		t.Errorf("Rules, -want, +got:\n%s", diff)
	}

	// What is cluster-scoped has its PendingChange in our namespace.
	if *w.FailurePolicy != admissionregistrationv1.Fail || len(w.NamespaceSelector.MatchExpressions) > 0 || *w.ClientConfig.URL != "https://127.0.0.1/approve" {
		t.Errorf("webhook: %+v", w)
	}
}
