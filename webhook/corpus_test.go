// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// fewestForWebhook is how many scenarios the webhook can be asked at least.
const fewestForWebhook = 200

// TestTheWebhookDecidesAsTheCorpusSays puts every scenario that an API server
// can put to a webhook to both endpoints, over HTTP: first to be stamped, then
// what came of it to be enforced. What comes of it must be what the engine
// decides.
func TestTheWebhookDecidesAsTheCorpusSays(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	asked := 0

	for _, s := range all {
		if s.Request == nil || s.Request.Action != "" || s.Request.ParentSettles {
			continue // The webhook finds the action out by itself, and settling is the function's.
		}

		if s.Request.Operation == "CREATE" && s.New == nil || s.Request.Operation != "CREATE" && s.Old == nil {
			continue // The API server sends the objects that an operation is about.
		}

		asked++

		t.Run(s.Name, func(t *testing.T) { ask(t, s) })
	}

	if asked < fewestForWebhook {
		t.Errorf("%d scenarios were put to the webhook, want at least %d", asked, fewestForWebhook)
	}
}

func ask(t *testing.T, s corpus.Scenario) {
	t.Helper()

	req, _ := s.Decision()
	want := decision.Decide(req)

	c := &cluster{policies: s.Policies, bindings: s.Bindings, upgrades: s.Upgrades, enforcements: s.Enforcements}
	c.params, c.unreadable = s.Params, s.Request.Unreadable

	for _, version := range s.Request.Versions {
		c.served = append(c.served, s.New.GroupVersionKind().GroupKind().WithVersion(version))
	}

	for _, u := range []*unstructured.Unstructured{s.Parent, s.Namespace} {
		if u != nil {
			c.live, c.informed = append(c.live, u), append(c.informed, u)
		}
	}

	if req.Operation == request.OperationDelete {
		c.live = append(c.live, req.Old)
	}

	judge := c.judge(t, req.Basis.Now)
	judge.Settings = req.Basis.Settings
	judge.Versions = func(context.Context, schema.GroupResource) []string { return s.Request.Versions }

	if s.Request.Granted != nil {
		judge.Authorizer = &s
	}

	// 1. To be stamped.
	review := reviewOf(t, req)
	got := post(t, serve(t, &webhook.Mutator{Judge: judge}), review)

	answer := want.Answer()
	refused := answer.Final || req.Operation == request.OperationDelete && answer.Refuses()

	checkAnswer(t, "mutate", got, answer.Reason, refused)

	if refused {
		return
	}

	if !answer.Refuses() {
		if diff := cmp.Diff(webhook.Clip(want.Warnings), got.Warnings, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("mutate: warnings, -want, +got:\n%s", diff)
		}
	}

	if req.Operation == request.OperationDelete {
		checkRecord(t, c, want)

		return
	}

	stored := patched(t, review.Object.Raw, got.Patch)
	if diff := cmp.Diff(json.RawMessage(encode(t, want.Object)), json.RawMessage(stored), jsonEqual()); diff != "" {
		t.Errorf("mutate: the object, -want, +got:\n%s", diff)
	}

	// 2. To be enforced.
	review.Object.Raw = stored
	checkAnswer(t, "enforce", post(t, serve(t, &webhook.Enforcer{Judge: judge}), review), answer.Reason, answer.Refuses())

	if s.Parent != nil && answer.Refuses() && c.reads == 0 {
		t.Error("refused without a look at the live parent")
	}
}

// reviewOf is what the API server asks.
func reviewOf(tb testing.TB, req request.Request) *admissionv1.AdmissionRequest {
	tb.Helper()

	u := req.New
	if u == nil {
		u = req.Old
	}

	gvk := u.GroupVersionKind()
	options := runtime.RawExtension{}

	if req.Options != nil {
		options.Raw = encode(tb, &unstructured.Unstructured{Object: req.Options})
	}

	if req.Orphans {
		options.Raw = []byte(`{"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Orphan"}`)
	}

	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range req.User.Extra {
		extra[key] = values
	}

	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Operation(req.Operation),
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Resource: metav1.GroupVersionResource{Group: req.Resource.Group, Version: gvk.Version, Resource: req.Resource.Resource},
		Name:     u.GetName(), Namespace: u.GetNamespace(),
		UserInfo:  authenticationv1.UserInfo{Username: req.User.Name, Groups: req.User.Groups, UID: req.User.UID, Extra: extra},
		DryRun:    new(req.DryRun),
		Object:    runtime.RawExtension{Raw: encode(tb, req.New)},
		OldObject: runtime.RawExtension{Raw: encode(tb, req.Old)},
		Options:   options,
	}
}

// post puts a request to an endpoint.
func post(tb testing.TB, url string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	tb.Helper()

	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
	})
	if err != nil {
		tb.Fatal(err)
	}

	ask, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}

	ask.Header.Set("Content-Type", "application/json")

	rsp, err := http.DefaultClient.Do(ask)
	if err != nil {
		tb.Fatal(err)
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.

	out := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(rsp.Body).Decode(&out); err != nil {
		tb.Fatal(err)
	}

	return out.Response
}

func checkAnswer(tb testing.TB, endpoint string, got *admissionv1.AdmissionResponse, why string, refused bool) {
	tb.Helper()

	if got.Allowed == refused {
		tb.Fatalf("%s: allowed %t: %v, want refused %t: %s", endpoint, got.Allowed, got.Result, refused, why)
	}

	if refused && got.Result.Message != why {
		tb.Errorf("%s: refused: %s\nwant: %s", endpoint, got.Result.Message, why)
	}

	if refused && got.AuditAnnotations["decision"] != string(decision.OutcomeDenied) {
		tb.Errorf("%s: audit annotations %v", endpoint, got.AuditAnnotations)
	}
}

// checkRecord checks what was written into an object before it is deleted.
func checkRecord(tb testing.TB, c *cluster, want decision.Decision) {
	tb.Helper()

	if want.Object == nil {
		if len(c.patches) > 0 {
			tb.Errorf("recorded %s, want nothing", c.patches)
		}

		return
	}

	if len(c.patches) != 1 {
		tb.Fatalf("recorded %d times, want once", len(c.patches))
	}

	var patch unstructured.Unstructured
	if err := json.Unmarshal([]byte(c.patches[0]), &patch.Object); err != nil {
		tb.Fatal(err)
	}

	for key, value := range patch.GetAnnotations() {
		if want.Object.GetAnnotations()[key] != value {
			tb.Errorf("recorded %s: %s, want %s", key, value, want.Object.GetAnnotations()[key])
		}
	}
}

// patched applies a JSON patch.
func patched(tb testing.TB, raw, patch []byte) []byte {
	tb.Helper()

	if len(patch) == 0 {
		return raw
	}

	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		tb.Fatal(err)
	}

	out, err := p.Apply(raw)
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

func jsonEqual() cmp.Option {
	return cmp.Transformer("JSON", func(raw json.RawMessage) any {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return string(raw)
		}

		return v
	})
}
