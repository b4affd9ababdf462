// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

var errBoom = errors.New("boom")

// digest is one that ends in a number.
func digestOf(n int) string { return fmt.Sprintf("sha256:%064d", n) }

// cluster is an authorizer that grants what it is told to, as VERB RESOURCE NAMESPACE/NAME, and
// notes what it is asked.
type cluster struct {
	grants []string
	broken error
	asked  []string
	groups []string
}

func (c *cluster) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	question := fmt.Sprintf("%s %s.%s/%s %s/%s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.GetSubresource(), a.GetNamespace(), a.GetName())
	c.asked, c.groups = append(c.asked, question), a.GetUser().GetGroups()

	if slices.Contains(c.grants, question) {
		return authorizer.DecisionAllow, "", c.broken
	}

	return authorizer.DecisionNoOpinion, "", c.broken
}

// asker asks a cluster; it knows all kinds but one.
func asker(c *cluster, approvers ...string) *Asker {
	return &Asker{Authorizer: c, Approvers: approvers, Resource: func(gvk schema.GroupVersionKind) (schema.GroupResource, error) {
		if gvk.Kind == "Unknown" {
			return schema.GroupResource{}, errBoom
		}

		return schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}, nil
	}}
}

func parse[T any](t *testing.T, text string) *T {
	t.Helper()

	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}

	return out
}

// pending lists two changes of a database, of which the first destroys it, and one of a
// cluster-scoped bucket; more are held where it is cut.
func pending(t *testing.T) *v1alpha1.PendingChange {
	t.Helper()

	return parse[v1alpha1.PendingChange](t, `
metadata: {name: databaseclaim-db, namespace: team-a}
spec: {objectRef: {apiVersion: example.org/v1, kind: DatabaseClaim, namespace: team-a, name: db}}
status:
  digest: `+digestOf(100)+`
  total: 3
  requesters: [anna, unknown]
  changes:
  - {ref: {apiVersion: rds.example.org/v1, kind: Instance, namespace: team-b, name: db}, field: delete, destroys: true, digest: "`+digestOf(1)+`"}
  - {ref: {apiVersion: rds.example.org/v1, kind: Instance, namespace: team-b, name: db}, field: spec.forProvider.size, digest: "`+digestOf(2)+`"}
  - {ref: {apiVersion: s3.example.org/v1, kind: Bucket, name: logs}, field: spec.secret, masked: true, digest: "`+digestOf(3)+`"}`)
}

const (
	destroyDB = "approve-destructive instances.rds.example.org/kausality team-b/db"
	approveDB = "approve instances.rds.example.org/kausality team-b/db"
	logs      = "approve buckets.s3.example.org/kausality team-a/logs"
	breakDB   = "break-glass instances.rds.example.org/kausality team-b/db"
)

type admitCase struct {
	reason string
	// spec of the ChangeApproval, and a change of what is held; nil for none.
	spec string
	held func(*v1alpha1.PendingChange)
	gone bool
	// user is berta where it is empty, who has all rights but those that lack.
	user      string
	approvers []string
	lacks     []string
	broken    error
	// refused are words of the message, warnings of each warning.
	refused  []string
	warnings []string
	// changes are numbers of the digests that are stored, asked what the cluster was asked.
	changes []int
	asked   []string
	// unread are changes that are stored as they are.
	unread []string
	err    error
}

func admitCases() map[string]admitCase {
	all := "{pendingChange: databaseclaim-db, digest: " + digestOf(100) + "}"
	one := "{pendingChange: databaseclaim-db, changes: [" + digestOf(2) + "]}"
	everything := []string{destroyDB, approveDB, logs}
	warned := []string{
		`this destroys something: delete of Instance "db" in namespace "team-b"`,
		`the value of spec.secret of Bucket "logs" is hidden: any value is approved, once`,
	}

	return map[string]admitCase{
		"All": {
			reason: "Where no change is named those that are listed are meant, and their digests are stored.",
			spec:   all, changes: []int{1, 2, 3}, asked: everything, warnings: warned,
		},
		"One": {reason: "Only the rights for what is named are needed.", spec: one, changes: []int{2}, asked: []string{approveDB}},
		"OneOfTheCurrentList": {
			reason: "With the digest of the list.", changes: []int{2}, asked: []string{approveDB},
			spec: "{pendingChange: databaseclaim-db, digest: " + digestOf(100) + ", changes: [" + digestOf(2) + "]}",
		},
		"Twice": {
			reason: "A change that is named twice is stored once.", changes: []int{2}, asked: []string{approveDB},
			spec: "{pendingChange: databaseclaim-db, changes: [" + digestOf(2) + ", " + digestOf(2) + "]}",
		},
		"SameRight": {
			reason: "The same right is asked for once.", spec: all, changes: []int{1, 2, 3}, asked: []string{approveDB, logs}, warnings: warned[1:],
			held: func(p *v1alpha1.PendingChange) { p.Status.Changes[0].Destroys = false },
		},
		"ClusterScopedRoot": {
			reason: "Below a cluster-scoped object a right in one namespace is none.", spec: all,
			held:    func(p *v1alpha1.PendingChange) { p.Spec.ObjectRef.Namespace = "" },
			asked:   []string{destroyDB, approveDB, "approve buckets.s3.example.org/kausality /logs"},
			refused: []string{"kubectl create clusterrole kausality-approve --verb=approve --resource=buckets.s3.example.org/kausality"},
		},
		"Creation": {
			reason: "What has no name yet is asked for without one, and called by its place in the Composition.",
			spec:   "{pendingChange: databaseclaim-db, changes: [" + digestOf(3) + "]}",
			held: func(p *v1alpha1.PendingChange) {
				p.Status.Changes[2].Ref.Name, p.Status.Changes[2].ComposedResource, p.Status.Changes[2].Field = "", "log-bucket", "create"
			},
			asked: []string{"approve buckets.s3.example.org/kausality team-a/"},
			refused: []string{
				`changes of Bucket "log-bucket". Bind a role: kubectl create role kausality-approve --verb=approve --resource=buckets.s3.example.org/kausality -n team-a`,
			},
		},
		"Gone": {
			reason: "Nothing is held.", spec: all, gone: true,
			refused: []string{`no PendingChange "databaseclaim-db" in namespace "team-a"`, "kubectl kausality pending -n team-a"},
		},
		"OtherList": {
			reason: "Who has seen another list has not seen what is held.", spec: "{pendingChange: databaseclaim-db, digest: " + digestOf(99) + "}",
			refused: []string{"spec.digest is not that of PendingChange", digestOf(100), "Look again"},
		},
		"OtherListWithChanges": {
			reason:  "Also where changes are named.",
			spec:    "{pendingChange: databaseclaim-db, digest: " + digestOf(99) + ", changes: [" + digestOf(2) + "]}",
			refused: []string{"spec.digest is not that of PendingChange"},
		},
		"Nothing": {
			reason: "There is no list any more.", spec: all,
			held:    func(p *v1alpha1.PendingChange) { p.Status = v1alpha1.PendingChangeStatus{} },
			refused: []string{"which is none"},
		},
		"Empty": {
			reason: "An empty list has a digest, too, and nothing to decide about.", spec: all,
			held:    func(p *v1alpha1.PendingChange) { p.Status.Changes, p.Status.Total = nil, 0 },
			refused: []string{"lists no change: nothing is held"},
		},
		"Cut": {
			reason: "Nobody approves what they cannot see.", spec: all,
			held:    func(p *v1alpha1.PendingChange) { p.Status.Total = 120 },
			refused: []string{"lists 3 of 120 changes", "Name their digests in spec.changes"},
		},
		"OfACutList": {
			reason: "What is listed of it can be named.", spec: one, changes: []int{2}, asked: []string{approveDB},
			held: func(p *v1alpha1.PendingChange) { p.Status.Total = 120 },
		},
		"NotHeld": {
			reason:  "A digest that nothing has is admitted, such as of an approval that is applied again from Git.",
			spec:    "{pendingChange: databaseclaim-db, changes: [" + digestOf(7) + ", " + digestOf(2) + "]}",
			changes: []int{7, 2}, asked: []string{approveDB}, warnings: []string{"no held change has the digest " + digestOf(7)},
		},
		"OwnChange": {
			reason: "Four eyes.", spec: one, user: "anna",
			refused: []string{`user "anna" requested the change and cannot approve it`, "someone else", "with GitOps", "different identities"},
		},
		"OwnChangeNotHeld": {
			reason: "Whatever is named: it may be held a moment later.", user: "anna",
			spec:    "{pendingChange: databaseclaim-db, changes: [" + digestOf(7) + "]}",
			refused: []string{`user "anna" requested the change and cannot approve it`},
		},
		"OwnRejection": {
			reason: "Who has asked for it may reject it, which warns of nothing.", user: "anna",
			spec:    "{pendingChange: databaseclaim-db, decision: Reject, digest: " + digestOf(100) + "}",
			changes: []int{1, 2, 3}, asked: everything,
		},
		"RejectionWithoutRight": {
			reason: "It takes the same right.", lacks: []string{destroyDB}, asked: []string{destroyDB},
			spec:    "{pendingChange: databaseclaim-db, decision: Reject, digest: " + digestOf(100) + "}",
			refused: []string{`user "berta" may not approve-destructive changes of Instance "db" in namespace "team-b"`},
		},
		"BreakGlass": {
			reason: "It takes a right of its own, and is told.", asked: []string{breakDB}, changes: []int{2},
			spec:     "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: outage, changes: [" + digestOf(2) + "]}",
			warnings: []string{"this allows the changes without any other approval"},
		},
		"BreakGlassOfOnesOwn": {
			reason: "In an emergency nobody waits for four eyes.", user: "anna", asked: []string{breakDB}, changes: []int{2},
			spec:     "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: outage, changes: [" + digestOf(2) + "]}",
			warnings: []string{"this allows the changes without any other approval"},
		},
		"BreakGlassThatDestroys": {
			reason: "The right to destroy is another one.", lacks: []string{destroyDB}, asked: []string{breakDB, destroyDB},
			spec:    "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: outage, changes: [" + digestOf(1) + "]}",
			refused: []string{"may not approve-destructive changes of Instance"},
		},
		"BreakGlassWithTheRightToApprove": {
			reason: "To approve is another one.", lacks: []string{breakDB}, asked: []string{breakDB},
			spec: "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: outage, changes: [" + digestOf(2) + "]}",
			refused: []string{
				`user "berta" may not let through alone, by break-glass, changes of Instance "db" in namespace "team-b"`,
				"kubectl create role kausality-break-glass --verb=break-glass --resource=instances.rds.example.org/kausality -n team-b",
			},
		},
		"BreakGlassByAMachine": {
			reason: "Not even one that may approve.", user: "system:serviceaccount:flux-system:approver", approvers: []string{"flux-system:approver"},
			spec:    "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: outage, changes: [" + digestOf(2) + "]}",
			refused: []string{`service account "flux-system/approver" may not let changes through by decision BreakGlass`},
		},
		"BreakGlassForNoReason": {
			reason: "The schema says what is missing.", gone: true, changes: []int{2},
			spec: "{pendingChange: databaseclaim-db, decision: BreakGlass, reason: ' ', changes: [" + digestOf(2) + "]}",
		},
		"WithoutRight": {
			reason: "The message has the right, how to see it, and what gives it.", spec: one, lacks: []string{approveDB}, asked: []string{approveDB},
			refused: []string{
				`user "berta" may not approve changes of Instance "db" in namespace "team-b"`,
				"may not approve changes of Instance",
				"kubectl create role kausality-approve --verb=approve --resource=instances.rds.example.org/kausality -n team-b",
			},
		},
		"DestructiveAlone": {
			reason: "One right is not the other.", spec: all, lacks: []string{approveDB}, asked: []string{destroyDB, approveDB},
			refused: []string{"may not approve changes"},
		},
		"ServiceAccount": {
			reason: "A service account is no person.", spec: one, user: "system:serviceaccount:flux-system:approver",
			refused: []string{`service account "flux-system/approver" may not decide`, "--approvers=flux-system:approver"},
		},
		"NamedServiceAccount": {
			reason: "One that is named may, with the right.", spec: one, user: "system:serviceaccount:flux-system:approver",
			approvers: []string{"other:approver", "flux-system:approver"}, changes: []int{2}, asked: []string{approveDB},
		},
		"NamedServiceAccountWithoutRight": {
			reason: "Being named is no right.", spec: one, user: "system:serviceaccount:flux-system:approver",
			approvers: []string{"flux-system:approver"}, lacks: []string{approveDB}, asked: []string{approveDB},
			refused: []string{"may not approve changes"},
		},
		"ServiceAccountNotHeld": {
			reason: "Whatever is named.", user: "system:serviceaccount:flux-system:approver",
			spec: "{pendingChange: databaseclaim-db, changes: [" + digestOf(7) + "]}", refused: []string{"may not decide"},
		},
		"Component": {
			reason: "Nor is a component of Kubernetes.", spec: one, user: "system:kube-controller-manager",
			refused: []string{"is a component of Kubernetes"},
		},
		"Admin": {reason: "Distributions give this user to a person.", spec: one, user: "system:admin", changes: []int{2}, asked: []string{approveDB}},
		"Unstable": {
			reason: "What asks for another value each time is not approved by value.", spec: one,
			held:    func(p *v1alpha1.PendingChange) { p.Status.Changes[1].Unstable = true },
			refused: []string{"spec.forProvider.size of Instance \"db\" in namespace \"team-b\" has another desired value each time", "name their digests"},
		},
		"UnstableBesides": {
			reason: "The others can be approved.", spec: one, changes: []int{2}, asked: []string{approveDB},
			held: func(p *v1alpha1.PendingChange) { p.Status.Changes[0].Unstable = true },
		},
		"NoDigest": {
			reason: "What cannot be named is not approved with the others.", spec: all,
			held:    func(p *v1alpha1.PendingChange) { p.Status.Changes[2].Digest = "" },
			refused: []string{"spec.secret of Bucket \"logs\" has no digest yet"},
		},
		"Malformed": {
			reason: "What the schema refuses it says itself.", gone: true,
			spec: "{pendingChange: databaseclaim-db, changes: [sha256:1]}", unread: []string{"sha256:1"},
		},
		"Indecisive":  {reason: "Also of a decision.", spec: "{pendingChange: databaseclaim-db, decision: Maybe, changes: [" + digestOf(2) + "]}", changes: []int{2}, gone: true},
		"Nameless":    {reason: "Also of what it is about.", spec: "{pendingChange: '', changes: [" + digestOf(2) + "]}", changes: []int{2}, gone: true},
		"Endless":     {reason: "Also of how long it is good for.", spec: "{pendingChange: databaseclaim-db, validFor: 1000h, changes: [" + digestOf(2) + "]}", changes: []int{2}, gone: true},
		"Void":        {reason: "Also of what is meant.", spec: "{pendingChange: databaseclaim-db}", gone: true},
		"NotAnswered": {reason: "Who cannot be asked about approves nothing.", spec: one, broken: errBoom, asked: []string{approveDB}, err: errBoom},
		"UnknownKind": {
			reason: "Nor can what is called nobody knows what.", spec: one, err: errBoom,
			held: func(p *v1alpha1.PendingChange) { p.Status.Changes[1].Ref.Kind = "Unknown" },
		},
	}
}

func TestWhoMayDecideAboutWhatIsHeldDoes(t *testing.T) {
	for name, tc := range admitCases() {
		t.Run(name, func(t *testing.T) {
			c := &cluster{grants: []string{destroyDB, approveDB, logs, breakDB}, broken: tc.broken}
			c.grants = slices.DeleteFunc(c.grants, func(g string) bool { return slices.Contains(tc.lacks, g) })

			user := v1alpha1.Approver{Username: "berta", UID: "1", Groups: []string{"dba"}, Extra: map[string]v1alpha1.ExtraValue{"a": {"b"}}}
			if tc.user != "" {
				user.Username = tc.user
			}

			in := Request{Approval: &v1alpha1.ChangeApproval{Spec: *parse[v1alpha1.ChangeApprovalSpec](t, tc.spec)}, Pending: pending(t), User: user}
			in.Approval.Namespace = "team-a"
			in.Approval.Spec.Approver = &v1alpha1.Approver{Username: "forged", Groups: []string{"system:masters"}}

			if tc.held != nil {
				tc.held(in.Pending)
			}

			if tc.gone {
				in.Pending = nil
			}

			got, err := Admit(in, asker(c, tc.approvers...))
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\nerror %v, want %v", tc.reason, err, tc.err)
			}

			if diff := cmp.Diff(tc.asked, c.asked); diff != "" {
				t.Errorf("%s\nAsked, -want, +got:\n%s", tc.reason, diff)
			}

			if len(c.asked) > 0 && !cmp.Equal(c.groups, user.Groups) {
				t.Errorf("%s\nasked for groups %q", tc.reason, c.groups)
			}

			if err == nil {
				tc.check(t, got, user)
			}
		})
	}
}

// check compares an admission with what is wanted.
func (tc admitCase) check(t *testing.T, got Admission, user v1alpha1.Approver) {
	t.Helper()

	if (got.Refused != "") != (len(tc.refused) > 0) {
		t.Fatalf("%s\nrefused: %s", tc.reason, got.Refused)
	}

	for _, words := range tc.refused {
		if !strings.Contains(got.Refused, words) {
			t.Errorf("%s\nno %q in %s", tc.reason, words, got.Refused)
		}
	}

	if got.Refused != "" {
		return
	}

	want := tc.unread
	for _, n := range tc.changes {
		want = append(want, digestOf(n))
	}

	if diff := cmp.Diff(want, got.Changes); diff != "" {
		t.Errorf("%s\nChanges, -want, +got:\n%s", tc.reason, diff)
	}

	if diff := cmp.Diff(user, got.Approver); diff != "" {
		t.Errorf("%s\nApprover, -want, +got:\n%s", tc.reason, diff)
	}

	if len(got.Warnings) != len(tc.warnings) {
		t.Errorf("%s\nwarnings %q, want %q", tc.reason, got.Warnings, tc.warnings)
	}

	for i := range min(len(got.Warnings), len(tc.warnings)) {
		if !strings.Contains(got.Warnings[i], tc.warnings[i]) {
			t.Errorf("%s\nwarning %q, want %q", tc.reason, got.Warnings[i], tc.warnings[i])
		}
	}
}

func TestNobodyDecidesWithoutAnAuthorizer(t *testing.T) {
	a := asker(nil)
	a.Authorizer = nil

	ok, _, err := a.MayDecide(v1alpha1.Approver{Username: "berta"}, v1alpha1.DecisionApprove, pending(t).Status.Changes[0], "team-a")
	if ok || !errors.Is(err, errNoAuthorizer) {
		t.Errorf("may decide: %t, %v", ok, err)
	}
}
