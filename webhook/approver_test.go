// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

var (
	listed  = "sha256:" + strings.Repeat("1", 64)
	changed = "sha256:" + strings.Repeat("2", 64)
)

// pendings is an API server with one PendingChange.
type pendings struct {
	client.Reader

	found   *v1alpha1.PendingChange
	broken  error
	waiting bool
}

func (p pendings) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if p.waiting {
		<-ctx.Done()

		return ctx.Err()
	}

	out, ok := obj.(*v1alpha1.PendingChange)
	if p.broken != nil || !ok {
		return p.broken
	}

	if client.ObjectKeyFromObject(p.found) != key {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pendingchanges"}, key.Name)
	}

	p.found.DeepCopyInto(out)

	return nil
}

func stored(t *testing.T) *v1alpha1.PendingChange {
	t.Helper()

	out := &v1alpha1.PendingChange{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: databaseclaim-db, namespace: team-a}
spec: {objectRef: {apiVersion: example.org/v1, kind: DatabaseClaim, namespace: team-a, name: db}}
status:
  digest: `+listed+`
  total: 1
  requesters: [anna]
  changes: [{ref: {apiVersion: rds.example.org/v1, kind: Instance, namespace: team-a, name: db}, field: delete, destroys: true, digest: "`+changed+`"}]`), out); err != nil {
		t.Fatal(err)
	}

	return out
}

// approving is a webhook of a cluster in which members of dba may approve all, and that knows
// Instances alone.
func approving(t *testing.T, live client.Reader) *webhook.Approver {
	t.Helper()

	metrics, err := webhook.NewMetrics(prometheus.NewRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "rds.example.org", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "rds.example.org", Version: "v1", Kind: "Instance"}, meta.RESTScopeNamespace)

	return &webhook.Approver{
		Reviewer: &webhook.Reviewer{Mapper: mapper, Authorizer: authorizer.AuthorizerFunc(
			func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetUser().GetName() == "slow" {
					<-ctx.Done()

					return authorizer.DecisionNoOpinion, "", ctx.Err()
				}

				if len(a.GetUser().GetGroups()) == 1 && a.GetVerb() == v1alpha1.VerbApproveDestructive && a.GetResource() == "instances" {
					return authorizer.DecisionAllow, "", nil
				}

				return authorizer.DecisionNoOpinion, "", nil
			})},
		Live: live, Metrics: metrics, Log: logr.Discard(),
	}
}

func TestAChangeApprovalIsSignedAsItIsMade(t *testing.T) {
	const berta = `{username: berta, uid: "7", groups: [dba], extra: {"example.org/session": [a]}}`

	all := "{pendingChange: databaseclaim-db, digest: " + listed + "}"

	for name, tc := range map[string]struct {
		reason string
		user   string
		spec   string
		live   pendings
		// want is the spec that is stored; refused are words of the refusal, of a status.
		want    string
		refused []string
		status  int32
		warning string
	}{
		"Signed": {
			reason: "Whose it is, and what is meant.", user: berta, spec: all, warning: "this destroys something",
			want: "{pendingChange: databaseclaim-db, digest: " + listed + ", changes: [" + changed + "], approver: " + berta + "}",
		},
		"Forged": {
			reason: "Whatever it says.", user: berta, warning: "this destroys something",
			spec: "{pendingChange: databaseclaim-db, changes: [" + changed + "], approver: {username: anna, groups: [system:masters], extra: {a: [b]}}, other: 1}",
			want: "{pendingChange: databaseclaim-db, changes: [" + changed + "], other: 1, approver: " + berta + "}",
		},
		"WithoutRight": {
			reason: "The refusal is one of a right.", user: "{username: carl}", spec: all, status: http.StatusForbidden,
			refused: []string{`user "carl" may not approve-destructive`},
		},
		"Own": {reason: "Four eyes.", user: "{username: anna, groups: [dba]}", spec: all, status: http.StatusForbidden, refused: []string{"cannot approve it"}},
		"Gone": {
			reason: "Nothing is held.", user: berta, spec: "{pendingChange: databaseclaim-other, digest: " + listed + "}",
			status: http.StatusForbidden, refused: []string{`no PendingChange "databaseclaim-other" in namespace "team-a"`},
		},
		"NoName": {
			reason: "Nobody is asked for one without a name; the API server refuses it itself.", user: "{username: berta}", live: pendings{broken: errBoom},
			spec: "{digest: " + listed + "}", want: "{digest: " + listed + ", approver: {username: berta}}",
		},
		"PathAsName": {
			reason: "Nor for one that nothing can be called.", user: berta, spec: "{pendingChange: a/b, digest: " + listed + "}", live: pendings{broken: errBoom},
			status: http.StatusForbidden, refused: []string{`no PendingChange "a/b" in namespace "team-a"`},
		},
		"Unread": {
			reason: "What cannot be read is not approved.", user: berta, spec: all, live: pendings{broken: errBoom},
			status: http.StatusInternalServerError, refused: []string{"try again", `cannot get PendingChange "databaseclaim-db"`, "boom"},
		},
		"Waiting": {
			reason: "It is waited for two seconds.", user: berta, spec: all, live: pendings{waiting: true},
			status: http.StatusInternalServerError, refused: []string{"has not answered within 2s"},
		},
		"WaitingForARight": {
			reason: "Also for a right.", user: "{username: slow}", spec: all,
			status: http.StatusInternalServerError, refused: []string{"has not answered within 2s"},
		},
		"Unreadable": {
			reason: "What is no ChangeApproval the API server refuses itself.", user: berta, spec: "{pendingChange: databaseclaim-db, validFor: soon}",
			want: "{pendingChange: databaseclaim-db, validFor: soon}", warning: "cannot read ChangeApproval",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.live.found = stored(t)

			var user authenticationv1.UserInfo
			if err := yaml.UnmarshalStrict([]byte(tc.user), &user); err != nil {
				t.Fatal(err)
			}

			raw, err := yaml.YAMLToJSON([]byte("{kind: ChangeApproval, spec: " + tc.spec + "}"))
			if err != nil {
				t.Fatal(err)
			}

			rsp := approving(t, tc.live).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "team-a", UserInfo: user, Object: runtime.RawExtension{Raw: raw},
			}})

			if rsp.Allowed != (len(tc.refused) == 0) {
				t.Fatalf("%s\nallowed: %t, %+v", tc.reason, rsp.Allowed, rsp.Result)
			}

			if warning := strings.Join(rsp.Warnings, "\n"); !strings.Contains(warning, tc.warning) || (warning == "") != (tc.warning == "") {
				t.Errorf("%s\nwarnings %q", tc.reason, rsp.Warnings)
			}

			for _, words := range tc.refused {
				if !strings.Contains(rsp.Result.Message, words) || rsp.Result.Code != tc.status {
					t.Errorf("%s\nno %q in %d %s", tc.reason, words, rsp.Result.Code, rsp.Result.Message)
				}
			}

			if rsp.Allowed {
				if diff := cmp.Diff(decoded(t, tc.want), specOf(t, raw, rsp)); diff != "" {
					t.Errorf("%s\nSpec, -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// decoded is a value of YAML.
func decoded(t *testing.T, text string) any {
	t.Helper()

	var out any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

// specOf is the spec of an object that a response has changed.
func specOf(t *testing.T, raw []byte, rsp admission.Response) any {
	t.Helper()

	if err := rsp.Complete(admission.Request{}); err != nil {
		t.Fatal(err)
	}

	var object map[string]any
	if err := json.Unmarshal(patched(t, raw, rsp.Patch), &object); err != nil {
		t.Fatal(err)
	}

	return object["spec"]
}

func TestTheManagerAsksAgainWhoMayDecide(t *testing.T) {
	r := approving(t, nil).Reviewer
	entry := stored(t).Status.Changes[0]

	for name, tc := range map[string]struct {
		user    v1alpha1.Approver
		kind    string
		want    bool
		reason  string
		problem string
	}{
		"Granted": {user: v1alpha1.Approver{Username: "berta", Groups: []string{"dba"}}, kind: "Instance", want: true},
		"Lost":    {user: v1alpha1.Approver{Username: "berta"}, kind: "Instance", reason: "kubectl create role kausality-approve-destructive --verb=approve-destructive"},
		"Unknown": {user: v1alpha1.Approver{Username: "berta"}, kind: "Cluster", problem: `cannot find the resource of kind "Cluster"`},
	} {
		t.Run(name, func(t *testing.T) {
			entry.Ref.Kind = tc.kind

			ok, reason, err := r.MayDecide(t.Context(), tc.user, v1alpha1.DecisionApprove, entry, "team-a")
			if ok != tc.want || !strings.Contains(reason, tc.reason) || (err != nil) != (tc.problem != "") {
				t.Errorf("may decide: %t, %s, %v", ok, reason, err)
			}

			if err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %v, want %s", err, tc.problem)
			}
		})
	}
}
