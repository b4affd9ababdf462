// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// strict is a cluster that does nothing for a request that has ended, and for a while
// nothing at all.
type strict struct {
	*cluster

	mu sync.Mutex
	// refuses is how many times it fails yet.
	refuses int
}

func (s *strict) fails(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	if s.refuses > 0 {
		s.refuses--

		return errBoom
	}

	return nil
}

func (s *strict) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*unstructured.Unstructured); !ok { // The kind has no CRD.
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if obj.GetObjectKind().GroupVersionKind().Kind == "Palette" {
		if err := s.fails(ctx); err != nil {
			return err
		}
	}

	return s.cluster.Get(ctx, key, obj, opts...)
}

func (s *strict) Authorize(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if err := s.fails(ctx); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}

	return authorizer.DecisionAllow, "", nil
}

// TestWhatAScalingGivesFollowsItThoughTheRequestHasEnded: it is decided anew then, and what
// is not known at that moment is no edit of whoever was allowed to.
func TestWhatAScalingGivesFollowsItThoughTheRequestHasEnded(t *testing.T) {
	const (
		params     = "paramKind: {apiVersion: platform.example.org/v1, kind: Palette}, paramRef: {name: default, namespace: platform}, "
		byName     = "subjects: [{kind: User, name: anna, mayInitiate: true}]"
		permission = "subjects: [{kind: Permission, name: scale, mayInitiate: true}]"
		asks       = `, cel: ["authorizer.requestResource.check('scale').allowed()"]`
	)

	cases := map[string]struct {
		reason, spec, match string
		// refuses is how many times what is asked of fails then, and stored how long it takes
		// until the change is.
		refuses int
		stored  time.Duration
	}{
		"Plain":           {"Nothing is asked for.", byName, "", 0, 0},
		"Later":           {"Another webhook may answer late.", byName, "", 0, 12 * time.Second},
		"Parameters":      {"Parameters are read anew.", params + byName, "", 0, 0},
		"ParametersLater": {"They may not be there at once.", params + byName, "", 12, 0},
		"Permission":      {"The authorizer is asked anew.", permission, "", 0, 0},
		"PermissionLater": {"It may not answer at once.", permission, "", 12, 0},
		"Authorizer":      {"Also by a condition.", byName, asks, 0, 0},
		"AuthorizerLater": {"Which is false where it does not answer.", byName, asks, 12, 0},
		"Together":        {"All of that together.", params + permission, asks, 12, 2 * time.Second},
	}

	replicaSet := func(replicas, generation string) *unstructured.Unstructured {
		return manifest(t, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: u, generation: "+generation+
			`, resourceVersion: "7"}, spec: {replicas: `+replicas+"}}")
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policies := fixture.Documents[v1alpha1.AllowancePolicy](t, "{metadata: {name: replicas}, spec: {match: {kind: ReplicaSet, fields: [spec.replicas]"+
					tc.match+"}, allow: [{kind: Pod, mutations: [create]}], "+tc.spec+"}}")
				c := &strict{cluster: &cluster{policies: policies}}
				c.params = []*unstructured.Unstructured{manifest(t, "{apiVersion: platform.example.org/v1, kind: Palette, metadata: {name: default, namespace: platform}}")}
				c.live = []*unstructured.Unstructured{replicaSet("2", "3"), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}

				judge := c.judge(t, time.Now())
				judge.Live, judge.Authorizer = c, c

				var past atomic.Int64
				judge.Parameters = parameter.NewReader(c, c.mapper(), nil, func() time.Time { return time.Now().Add(time.Duration(past.Load())) })

				scaler := webhook.NewScaler(c.mapper())

				review := toScale(t)
				review.UserInfo.Username, review.Resource.Resource = "anna", "replicasets"

				// 1. It is allowed, and the request ends.
				ctx, end := context.WithCancel(t.Context())
				if rsp := (&webhook.Mutator{Judge: judge, Scaler: scaler}).Handle(ctx, admission.Request{AdmissionRequest: *review}); !rsp.Allowed || len(rsp.Warnings) > 0 {
					t.Fatalf("%s\nallowed %t: %v", tc.reason, rsp.Allowed, rsp.Warnings)
				}

				end()

				// 2. It is stored. What was read before is no longer good.
				time.Sleep(tc.stored)

				past.Store(int64(time.Minute))

				c.mu.Lock()
				c.refuses, c.live[0] = tc.refuses, replicaSet("3", "4")
				c.mu.Unlock()

				// 3. What it gives follows, and nothing else.
				done, stop := context.WithCancel(t.Context())
				stop()

				if err := scaler.Start(done); err != nil {
					t.Fatal(err)
				}

				got := strings.Join(c.patches, "\n")
				if len(c.patches) != 1 || !strings.Contains(got, "kind: Pod") || strings.Contains(got, v1alpha1.AnnotationHeld) {
					t.Errorf("%s\nwritten: %s", tc.reason, got)
				}

				if c.refuses > 0 {
					t.Errorf("%s\nit was to fail %d times more", tc.reason, c.refuses)
				}
			})
		})
	}
}
