// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// silent is an API server that does not answer who asks it for parameters, or about users.
type silent struct {
	client.Reader

	asked int
}

func (s *silent) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()

	return ctx.Err()
}

func (s *silent) Authorize(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
	s.asked++

	<-ctx.Done()

	return authorizer.DecisionNoOpinion, "", ctx.Err()
}

// TestADecisionWaitsForTwoSecondsAtMost for all that it asks the API server: that one waits for
// the webhook for four where it goes on without an answer, as if nobody had to be asked.
func TestADecisionWaitsForTwoSecondsAtMost(t *testing.T) {
	const (
		match      = `match: {kind: Deployment, fields: [spec.replicas]}, allow: [{kind: ReplicaSet, mutations: [spec.replicas]}]`
		permission = `{metadata: {name: permission}, spec: {subjects: [{kind: Permission, name: scale, mayInitiate: true}], ` + match + `}}`
		either     = `{metadata: {name: either}, spec: {subjects: [{kind: Permission, name: scale, mayInitiate: true}, {kind: User, name: hans, mayInitiate: true}], ` + match + `}}`
		named      = `{metadata: {name: named}, spec: {subjects: [{kind: User, name: hans, mayInitiate: true}], ` + match + `}}`
		condition  = `{metadata: {name: condition}, spec: {subjects: [{kind: User, name: hans, mayInitiate: true}], ` +
			`match: {kind: Deployment, fields: [spec.replicas], cel: ["authorizer.requestResource.check('scale').allowed() || authorizer.requestResource.check('paint').allowed()"]}, ` +
			`allow: [{kind: ReplicaSet, mutations: [spec.replicas]}]}}`
		one = `{metadata: {name: one}, spec: {paramKind: {apiVersion: example.org/v1, kind: One}, paramRef: {name: a}, ` +
			`subjects: [{kind: User, name: hans, mayInitiate: true}], ` + match + `}}`
		two = `{metadata: {name: two}, spec: {paramKind: {apiVersion: example.org/v1, kind: Two}, paramRef: {name: a}, ` +
			`subjects: [{kind: User, name: hans, mayInitiate: true}], ` + match + `}}`
	)

	cases := map[string]struct {
		policies []string
		took     time.Duration
		asked    int
		granted  bool
		says     []string
	}{
		"Permission": {
			[]string{permission},
			2 * time.Second, 1, false,
			[]string{"cannot be asked for initiate of deployments.apps/kausality: the API server has not answered within 2s"},
		},
		"Conditions": {[]string{condition}, 2 * time.Second, 2, false, []string{`policy "condition"`}},
		"Parameters": {
			[]string{one, two},
			2 * time.Second, 0, false,
			[]string{`its parameters cannot be read: One "shop/a": `, `its parameters cannot be read: Two "shop/a": `},
		},
		"AllOfThem": {
			[]string{one, permission, two},
			2 * time.Second, 1, false,
			[]string{`One "shop/a"`, "cannot be asked for initiate of deployments.apps/kausality"},
		},
		"Named":  {[]string{either}, 0, 0, true, nil},
		"Beside": {[]string{named, permission}, 2 * time.Second, 1, true, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := &cluster{params: params("One", "Two")}, &silent{}

				for _, text := range tc.policies {
					var p v1alpha1.AllowancePolicy
					if err := yaml.Unmarshal([]byte(text), &p); err != nil {
						t.Fatal(err)
					}

					c.policies = append(c.policies, p)
				}

				judge := c.judge(t, time.Now())
				judge.Authorizer = server
				judge.Parameters = parameter.NewReader(server, c.mapper(), nil, time.Now)

				began := time.Now()
				rsp := (&webhook.Mutator{Judge: judge}).Handle(t.Context(), admission.Request{AdmissionRequest: *enlarged(t)})
				took := time.Since(began)

				time.Sleep(time.Minute) // Reads go on for others that may wait for the same.

				if !rsp.Allowed || took != tc.took || server.asked != tc.asked {
					t.Errorf("allowed %t after %s, and %d questions: %v", rsp.Allowed, took, server.asked, rsp.Result)
				}

				if granted := len(rsp.Warnings) == 0; granted != tc.granted {
					t.Errorf("granted %t, with the warnings %q", granted, rsp.Warnings)
				}

				for _, words := range tc.says {
					if said := strings.Join(append(rsp.Warnings, rsp.AuditAnnotations["missing"]), "\n"); !strings.Contains(said, words) {
						t.Errorf("it is said %q, want %q", said, words)
					}
				}
			})
		})
	}
}

// params are parameters of some kinds, in a namespace.
func params(kinds ...string) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(kinds))
	for i, kind := range kinds {
		out[i] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": kind}}
		out[i].SetNamespace("shop")
		out[i].SetName("a")
	}

	return out
}

// enlarged has hans scale a Deployment by hand.
func enlarged(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()

	old := manifest(t, deployment)
	old.SetAnnotations(nil)

	obj := old.DeepCopy()
	if err := unstructured.SetNestedField(obj.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}

	return update(t, old, obj, "hans")
}
