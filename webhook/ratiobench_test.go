// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// limited is a policy about widgets that requires a binding and compares with a parameter.
func limited(name string) v1alpha1.AllowancePolicy {
	return v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AllowancePolicySpec{
		BindingMode: v1alpha1.BindingModeRequired,
		ParamKind:   &v1alpha1.ParamKind{APIVersion: "platform.example.org/v1", Kind: "Limit"},
		ParamRef:    &v1alpha1.ParamRef{Name: "default"},
		Match:       v1alpha1.Match{Kind: "Widget", Fields: []string{"spec.size"}, CEL: []string{"object.spec.size <= params.spec.size"}},
		Allow:       []v1alpha1.Permission{{Kind: "Widget", Mutations: []string{"spec.size"}}},
	}}
}

// bound binds a policy in a namespace to the user of the benchmarks.
func bound(name, namespace, policy string) v1alpha1.AllowanceBinding {
	return v1alpha1.AllowanceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: v1alpha1.AllowanceBindingSpec{
		Policy: policy, Subjects: []v1alpha1.BindingSubject{{Kind: "User", Name: "hans@example.com"}},
	}}
}

// crowded is a cluster with as many policies and bindings, of which one each is about widgets
// in the namespace, and a parameter.
func crowded(policies, bindings int) *informedCluster {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("default")

	limit := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(100)}}}
	limit.SetAPIVersion("platform.example.org/v1")
	limit.SetKind("Limit")
	limit.SetNamespace("default")
	limit.SetName("default")

	c := &informedCluster{informers: map[schema.GroupVersionKind]cache.Informer{}, cluster: &cluster{
		informed: []*unstructured.Unstructured{namespace}, params: []*unstructured.Unstructured{limit},
		policies: []v1alpha1.AllowancePolicy{limited("widgets")}, bindings: []v1alpha1.AllowanceBinding{bound("widgets", "default", "widgets")},
	}}

	for i := 1; i < policies; i++ {
		p := limited(fmt.Sprintf("other-%d", i))
		p.Spec.Match.Kind = fmt.Sprintf("Kind%d", i%500)
		c.policies = append(c.policies, p)
	}

	for i := 1; i < bindings; i++ {
		policy := "widgets"
		if i%2 > 0 {
			policy = fmt.Sprintf("other-%d", i)
		}

		c.bindings = append(c.bindings, bound(fmt.Sprintf("binding-%d", i), fmt.Sprintf("namespace-%d", i%100), policy))
	}

	return c
}

// BenchmarkHandleRatio measures an allowed change of a root, from the body of the request to
// that of the response, under 10,000 policies with 1,000 bindings, and under one of each, in
// turns: of-one-x is how many times as long it takes. The policy has a parameter, which is read
// every two seconds.
func BenchmarkHandleRatio(b *testing.B) {
	const turn = 20

	log.SetLogger(logr.Discard()) // The framework's own.

	var handlers [2]http.Handler

	for i, c := range []*informedCluster{crowded(1, 1), crowded(10_000, 1_000)} {
		judge := c.judge(b, time.Now())
		judge.Objects, judge.Log = cached.NewObjects(c, c, c.mapper(), nil), zap.New(zap.WriteTo(io.Discard))
		handlers[i] = webhook.NewEndpoint(&webhook.Mutator{Judge: judge})
	}

	body := encodeReview(b, reviewOf(b, benchmarkRequest(false)))

	// Compiled once.
	for _, h := range handlers {
		if rsp := answer(b, h, body); !stamps(rsp) {
			b.Fatalf("nothing is stamped: %s", rsp)
		}
	}

	var took [2]time.Duration

	for b.Loop() {
		for i, h := range handlers {
			start := time.Now()

			for range turn {
				answer(b, h, body)
			}

			took[i] += time.Since(start)
		}
	}

	b.ReportMetric(float64(took[1])/float64(took[0]), "of-one-x")
}

// stamps reports whether an answer has a patch.
func stamps(rsp []byte) bool {
	review := admissionv1.AdmissionReview{}

	return json.Unmarshal(rsp, &review) == nil && len(review.Response.Patch) > 0
}
