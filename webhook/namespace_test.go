// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// deletion is the request of a user to delete an object.
func deletion(tb testing.TB, u *unstructured.Unstructured, user string) *admissionv1.AdmissionRequest {
	tb.Helper()

	req := update(tb, u, u, user)
	req.Operation, req.Object = admissionv1.Delete, runtime.RawExtension{}

	return req
}

// tenants is a policy by which hans deletes namespaces with their stores.
func tenants(tb testing.TB) *cluster {
	tb.Helper()

	c := &cluster{policies: make([]v1alpha1.AllowancePolicy, 1)}
	if err := yaml.Unmarshal([]byte(`{metadata: {name: tenants}, spec: {match: {kind: Namespace, fields: [delete]},
		subjects: [{kind: User, name: hans, mayInitiate: true}], allow: [{kind: Store, mutations: [delete]}]}}`), &c.policies[0]); err != nil {
		tb.Fatal(err)
	}

	return c
}

const (
	team  = `{apiVersion: v1, kind: Namespace, metadata: {name: team-a, uid: ns, resourceVersion: "3"}}`
	going = `{apiVersion: v1, kind: Namespace, metadata: {name: team-a, uid: ns, resourceVersion: "9", deletionTimestamp: "2024-01-06T11:59:00Z",
		annotations: {kausality.io/allowances: "[{kind: Store, mutation: delete, generation: 0, initiator: hans, policy: tenants, id: '0.0', source: {type: Deletion, name: tenants}, trace: [{kind: Namespace, name: team-a, generation: 0, field: delete}]}]"}}}`
	shop = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: corner, namespace: team-a, uid: st, generation: 2,
		resourceVersion: "4", finalizers: [kausality.io/deletion]}, spec: {crossplane: {}}}`
)

func TestTheNamespaceControllerIsJudgedByTheNamespaceAsItIsNow(t *testing.T) {
	t.Parallel()

	c := tenants(t)
	c.informed = append(c.informed, manifest(t, team))
	c.live = append(c.live, manifest(t, going))

	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}),
		deletion(t, manifest(t, shop), "system:serviceaccount:kube-system:namespace-controller"))
	if got := rsp.AuditAnnotations["initiator"]; !rsp.Allowed || got != "hans" {
		t.Errorf("the informers do not know yet that the namespace goes: allowed %t, initiator %q, %+v", rsp.Allowed, got, rsp.Result)
	}

	c.live[0].SetAnnotations(nil)

	rsp = post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}),
		deletion(t, manifest(t, shop), "system:serviceaccount:kube-system:namespace-controller"))
	if rsp.Allowed || !strings.Contains(rsp.Result.Message, `without permission to delete Store "corner"`) {
		t.Errorf("nobody was granted to delete the namespace: allowed %t, %+v", rsp.Allowed, rsp.Result)
	}
}

// unwritableCluster is a cluster that refuses what the webhook writes.
type unwritableCluster struct{ *cluster }

func (unwritableCluster) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errBoom
}

func TestANamespaceGoesThoughThatCannotBeRecorded(t *testing.T) {
	t.Parallel()

	c := tenants(t)
	c.live = append(c.live, manifest(t, team))

	j := c.judge(t, time.Now())
	j.Writer = unwritableCluster{c}

	rsp := post(t, serve(t, &webhook.Mutator{Judge: j}), deletion(t, manifest(t, team), "hans"))
	if !rsp.Allowed || len(rsp.Warnings) != 1 || !strings.Contains(rsp.Warnings[0], "remain until someone with permission deletes them") {
		t.Errorf("allowed %t, warnings %q", rsp.Allowed, rsp.Warnings)
	}

	rsp = post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), deletion(t, manifest(t, team), "anna"))
	if !rsp.Allowed || len(c.patches) != 1 || !strings.Contains(c.patches[0], "anna") || strings.Contains(c.patches[0], "allowances") {
		t.Errorf("who deletes it is written down, and nothing else: allowed %t, patches %q", rsp.Allowed, c.patches)
	}
}
