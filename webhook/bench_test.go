// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// informedCluster is a cluster whose informers are made once, as real ones are.
type informedCluster struct {
	*cluster

	informers map[schema.GroupVersionKind]cache.Informer
}

func (c *informedCluster) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, ok := c.informers[gvk]; !ok {
		made, err := c.cluster.GetInformer(ctx, obj, opts...)
		if err != nil {
			return nil, err
		}

		c.informers[gvk] = made
	}

	return c.informers[gvk], nil
}

// widget is an object of some 2 KiB.
func widget(name string, size int64) *unstructured.Unstructured {
	settings := map[string]any{}
	for i := range 36 {
		settings[fmt.Sprintf("setting-%02d", i)] = fmt.Sprintf("the value of setting %d of %s", i, name)
	}

	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size, "settings": settings}}}
	u.SetAPIVersion("example.org/v1")
	u.SetKind("Widget")
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID("uid-of-widget")
	u.SetGeneration(size)
	u.SetAnnotations(map[string]string{"jira": "INFRA-23232"})

	return u
}

// owner allows what its children change.
func owner() *unstructured.Unstructured {
	u := widget("owner", 12)
	u.SetKind("Owner")
	u.SetUID("uid-of-owner")
	u.SetAnnotations(map[string]string{
		v1alpha1.AnnotationInitialized: `{"v":1}`,
		v1alpha1.AnnotationAllowances: allowance.FormatList(fixture.AllSourced([]v1alpha1.Allowance{{
			Kind: "Widget", Mutation: "spec.size", Generation: 12, Initiator: "hans@example.com", Policy: "owner-to-widget",
			Trace: []v1alpha1.Hop{{Kind: "Owner", Name: "owner", Generation: 12, Field: "spec.size"}},
		}})),
	})
	u.Object["status"] = map[string]any{"observedGeneration": int64(11)}

	return u
}

// benchmarkPolicies are one for the owner, and one with an expression for widgets.
func benchmarkPolicies() []v1alpha1.AllowancePolicy {
	allow := []v1alpha1.Permission{{Kind: "Widget", Mutations: []string{"spec.size"}}}

	return []v1alpha1.AllowancePolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: "owner-to-widget"}, Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{Kind: "Owner", Fields: []string{"spec.size"}}, Allow: allow,
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "anna@example.com"}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "widget-to-widget"}, Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{Kind: "Widget", Fields: []string{"spec.size"}, CEL: []string{"'jira' in object.metadata.annotations"}},
			Allow: allow, Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "hans@example.com", MayInitiate: true}},
		}},
	}
}

// benchmarkRequest is a change of a widget: of a child by who may carry on a change, or of a root by who
// may start one.
func benchmarkRequest(child bool) request.Request {
	req := request.Request{
		Operation: request.OperationUpdate, Old: widget("widget", 12), New: widget("widget", 13),
		User: policy.User{Name: "hans@example.com"}, Resource: schema.GroupResource{Group: "example.org", Resource: "widgets"},
	}

	if child {
		req.User.Name = "anna@example.com"
		isController := true

		for _, u := range []*unstructured.Unstructured{req.Old, req.New} {
			u.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: "example.org/v1", Kind: "Owner", Name: "owner", UID: "uid-of-owner", Controller: &isController},
			})
		}
	}

	return req
}

// BenchmarkHandle measures an allowed change at each endpoint, from the body of the request to that of
// the response, beside a handler of the same framework that allows everything.
func BenchmarkHandle(b *testing.B) {
	log.SetLogger(logr.Discard()) // The framework's own.

	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("default")

	c := &informedCluster{informers: map[schema.GroupVersionKind]cache.Informer{}, cluster: &cluster{
		informed: []*unstructured.Unstructured{owner(), namespace}, policies: benchmarkPolicies(),
		enforcements: []v1alpha1.Enforcement{{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}, Spec: v1alpha1.EnforcementSpec{
			Match: v1alpha1.EnforcementMatch{ResourceRules: []v1alpha1.ResourceRule{
				{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}},
			}},
			ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny},
		}}},
	}}
	judge := c.judge(b, time.Now())
	judge.Objects, judge.Log = cached.NewObjects(c, c, c.mapper(), nil), zap.New(zap.WriteTo(io.Discard))
	allow := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}

	for name, child := range map[string]bool{"Child": true, "Root": false} {
		// What is to be enforced is what came of the object.
		review := reviewOf(b, benchmarkRequest(child))
		stamped := admissionv1.AdmissionReview{}

		err := json.Unmarshal(answer(b, webhook.NewEndpoint(&webhook.Mutator{Judge: judge}), encodeReview(b, review)), &stamped)
		if err != nil || len(stamped.Response.Patch) == 0 {
			b.Fatalf("nothing is stamped: %+v, %v", stamped.Response, err)
		}

		enforced := review.DeepCopy()
		enforced.Object.Raw = patched(b, review.Object.Raw, stamped.Response.Patch)

		for _, e := range []struct {
			endpoint string
			handler  http.Handler
			review   *admissionv1.AdmissionRequest
		}{
			{"mutate", webhook.NewEndpoint(&webhook.Mutator{Judge: judge}), review},
			{"enforce", webhook.NewEndpoint(&webhook.Enforcer{Judge: judge}), enforced},
		} {
			body := encodeReview(b, e.review)
			b.Run(fmt.Sprintf("object=%s/endpoint=%s/by=kausality", name, e.endpoint), func(b *testing.B) { benchmarkHandler(b, e.handler, body) })
			b.Run(fmt.Sprintf("object=%s/endpoint=%s/by=allow-all", name, e.endpoint), func(b *testing.B) { benchmarkHandler(b, allow, body) })
		}
	}

	if c.reads > 0 {
		b.Errorf("%d reads from the API server", c.reads)
	}
}

func benchmarkHandler(b *testing.B, w http.Handler, body []byte) {
	b.Helper()
	b.ReportAllocs()

	for b.Loop() {
		answer(b, w, body)
	}
}

// answer has an endpoint answer, which is to allow.
func answer(tb testing.TB, w http.Handler, body []byte) []byte {
	tb.Helper()

	req := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")

	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, req)

	if !bytes.Contains(rec.Body.Bytes(), []byte(`"allowed":true`)) {
		tb.Fatalf("the answer is %s", rec.Body)
	}

	return rec.Body.Bytes()
}

func encodeReview(tb testing.TB, req *admissionv1.AdmissionRequest) []byte {
	tb.Helper()

	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
	})
	if err != nil {
		tb.Fatal(err)
	}

	return raw
}
