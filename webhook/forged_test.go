// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// deleting is what a deletion is put as.
func deleting(tb testing.TB, old *unstructured.Unstructured, user string, groups ...string) *admissionv1.AdmissionRequest {
	tb.Helper()

	gvk := old.GroupVersionKind()

	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Delete,
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"},
		Name:     old.GetName(), Namespace: old.GetNamespace(),
		UserInfo:  authenticationv1.UserInfo{Username: user, Groups: groups},
		OldObject: runtime.RawExtension{Raw: encode(tb, old)},
	}
}

// deletable is a cluster in which the platform team may delete a Claim.
func deletable(tb testing.TB) *cluster {
	tb.Helper()

	c := &cluster{policies: make([]v1alpha1.AllowancePolicy, 1)}

	err := yaml.UnmarshalStrict([]byte(`{metadata: {name: deletes}, spec: {match: {kind: Database, fields: [delete]},
		subjects: [{kind: Group, name: platform-team, mayInitiate: true}], allow: [{kind: XDatabase, mutations: [delete]}]}}`), &c.policies[0])
	if err != nil {
		tb.Fatal(err)
	}

	c.informed = append(c.informed, manifest(tb, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))

	return c
}

const (
	liveClaim = `
apiVersion: example.org/v1
kind: Database
metadata: {name: prod, namespace: shop, uid: u1, resourceVersion: "7", generation: 3, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: prod-x}}
`
	// madeUp is what somebody who reaches the webhook's port can say is there.
	madeUp = `
apiVersion: example.org/v1
kind: Database
metadata:
  name: prod
  namespace: shop
  uid: u1
  resourceVersion: "7"
  generation: 999
  annotations:
    kausality.io/allowances: |
      [{kind: XDatabase, mutation: spec, generation: 999, initiator: hans, policy: deletes, id: '999.0', source: {type: Policy, name: deletes, field: spec.size}, trace: [{kind: Database, name: prod, generation: 999, field: spec.size}]},
       {relation: External, mutations: [Update, Delete], generation: 999, initiator: hans, policy: deletes, id: '999.0', source: {type: Policy, name: deletes, field: spec.size}, trace: [{kind: Database, name: prod, generation: 999, field: spec.size}]}]
spec: {resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: prod-x}}
`
)

// grantedClaim is the live Claim once it is written down that hans deletes it.
func grantedClaim() string {
	return strings.Replace(strings.Replace(liveClaim, `"7"`, `"8"`, 1), `kausality.io/initialized: '{"v":1}'`,
		`kausality.io/initialized: '{"v":1}', kausality.io/allowances: "[{kind: XDatabase, mutation: delete, generation: 3, initiator: hans, policy: deletes, id: '3.0', source: {type: Deletion, name: deletes}, `+
			`trace: [{kind: Database, name: prod, generation: 3, field: delete}]}]"`, 1)
}

func TestAReviewOfADeletionHasNothingWrittenButWhatTheLiveObjectGives(t *testing.T) {
	cases := map[string]struct {
		reason       string
		review, live string
		allowed      bool
		conflict     bool
		written      string
	}{
		"Asked": {
			reason: "A deletion that is allowed is written down, at the version that was asked about.",
			review: liveClaim, live: liveClaim, allowed: true, written: `"resourceVersion":"7"`,
		},
		"MadeUp": {
			reason: "What the review says of the object is not what is written: it is computed from what is there.",
			review: madeUp, live: liveClaim, allowed: true, written: "generation: 3",
		},
		"NotThere": {
			reason: "Nothing is written of what is not there; the API server finds out by itself.",
			review: madeUp, allowed: true,
		},
		"AnotherUID": {
			reason: "A review about another object of the name writes nothing.",
			review: strings.Replace(madeUp, "uid: u1", "uid: known-or-not", 1), live: liveClaim, conflict: true,
		},
		"AnotherVersion": {
			reason: "A review about an older version has written what the one gives that is there: a controller was faster.",
			review: strings.Replace(madeUp, `"7"`, `"6"`, 1), live: liveClaim, allowed: true, written: `"resourceVersion":"7"`,
		},
		"WrittenBefore": {
			reason: "Who was asked before has written it down: nothing is left to write, and the deletion goes on.",
			review: liveClaim, live: grantedClaim(), allowed: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := deletable(t)
			if tc.live != "" {
				c.live = append(c.live, manifest(t, tc.live))
			}

			rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), deleting(t, manifest(t, tc.review), "hans", "platform-team"))
			if rsp.Allowed != tc.allowed {
				t.Fatalf("%s\nallowed %t: %+v", tc.reason, rsp.Allowed, rsp.Result)
			}

			if tc.conflict && rsp.Result.Code != http.StatusConflict {
				t.Errorf("%s\nanswered %+v", tc.reason, rsp.Result)
			}

			all := strings.Join(c.patches, "\n")
			if tc.written == "" && all != "" || !strings.Contains(all, tc.written) || strings.Contains(all, "999") {
				t.Errorf("%s\nwrote %s", tc.reason, all)
			}
		})
	}
}

func TestAReviewOfADeletionIsJudgedByTheLiveObjectsParent(t *testing.T) {
	const generous = `{apiVersion: example.org/v1, kind: Team, metadata: {name: t, namespace: shop, uid: t, generation: 2, annotations: {
		kausality.io/initialized: '{"v":1}',
		kausality.io/allowances: "[{kind: Database, mutation: delete, generation: 2, initiator: hans, id: '2.0', source: {type: Deletion}, trace: [{kind: Team, name: t, generation: 2, field: delete}]}]"}}}`

	c := deletable(t)
	c.live = append(c.live, manifest(t, liveClaim), manifest(t, generous))

	// The review says that it has a parent which allows it.
	forged := strings.Replace(liveClaim, "generation: 3,",
		"generation: 3, ownerReferences: [{apiVersion: example.org/v1, kind: Team, name: t, uid: t, controller: true}],", 1)

	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), deleting(t, manifest(t, forged), "anna", "app-team"))
	if len(c.patches) > 0 {
		t.Errorf("allowed %t, wrote %s", rsp.Allowed, c.patches)
	}
}
