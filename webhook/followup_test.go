// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strconv"
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

// What is scaled, before and after that.
const (
	twoScaled = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: u, generation: 3, resourceVersion: "7"},
		spec: {replicas: 2}}`
	threeScaled = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: u, generation: 4, resourceVersion: "7"},
		spec: {replicas: 3}}`
)

// scale has anna be allowed to scale it to three.
func scale(t *testing.T, judge *webhook.Judge, scaler *webhook.Scaler) {
	t.Helper()

	review := toScale(t)
	review.UserInfo.Username, review.Resource.Resource = "anna", "replicasets"

	ctx, end := context.WithCancel(t.Context())
	defer end()

	rsp := (&webhook.Mutator{Judge: judge, Scaler: scaler}).Handle(ctx, admission.Request{AdmissionRequest: *review})
	if !rsp.Allowed || len(rsp.Warnings) > 0 {
		t.Fatalf("allowed %t: %v", rsp.Allowed, rsp.Warnings)
	}
}

// follow waits for what follows.
func follow(t *testing.T, scaler *webhook.Scaler) {
	t.Helper()

	done, stop := context.WithCancel(t.Context())
	stop()

	if err := scaler.Start(done); err != nil {
		t.Fatal(err)
	}
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

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policies := fixture.Documents[v1alpha1.AllowancePolicy](t, "{metadata: {name: replicas}, spec: {match: {kind: ReplicaSet, fields: [spec.replicas]"+
					tc.match+"}, allow: [{kind: Pod, mutations: [create]}], "+tc.spec+"}}")
				c := &strict{cluster: &cluster{policies: policies}}
				c.params = []*unstructured.Unstructured{manifest(t, "{apiVersion: platform.example.org/v1, kind: Palette, metadata: {name: default, namespace: platform}}")}
				c.live = []*unstructured.Unstructured{manifest(t, twoScaled), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}

				judge := c.judge(t, time.Now())
				judge.Live, judge.Authorizer = c, c

				var past atomic.Int64
				judge.Parameters = parameter.NewReader(c, c.mapper(), nil, func() time.Time { return time.Now().Add(time.Duration(past.Load())) })

				scaler := webhook.NewScaler(c.mapper())

				// 1. It is allowed, and the request ends.
				scale(t, judge, scaler)

				// 2. It is stored. What was read before is no longer good.
				time.Sleep(tc.stored)

				past.Store(int64(time.Minute))

				c.mu.Lock()
				c.refuses, c.live[0] = tc.refuses, manifest(t, threeScaled)
				c.mu.Unlock()

				// 3. What it gives follows, and nothing else.
				follow(t, scaler)

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

// TestWhatAScalingGivesIsWrittenThoughOthersAreFaster and to nothing but what was scaled.
func TestWhatAScalingGivesIsWrittenThoughOthersAreFaster(t *testing.T) {
	const (
		soon    = 5 * time.Second // It is tried for three times as long.
		scaling = `{metadata: {name: replicas}, spec: {match: {kind: ReplicaSet, fields: [spec.replicas]},
			subjects: [{kind: User, name: anna, mayInitiate: true}], allow: [{kind: Pod, mutations: [create]}]}}`
	)

	// version is what was scaled at a version, and another what has its name by then.
	version := func(n int) string { return strings.Replace(threeScaled, `"7"`, strconv.Quote(strconv.Itoa(7+n)), 1) }
	another := func(int) string { return strings.Replace(version(1), "uid: u", "uid: v", 1) }

	for name, tc := range map[string]struct {
		reason string
		// stored is what is stored, and there what is there at each try to write what it gives.
		stored  string
		there   func(n int) string
		written string
	}{
		"Never":       {"It is written once.", version(0), func(int) string { return version(0) }, `"resourceVersion":"7"`},
		"Often":       {"It is tried again.", version(0), func(n int) string { return version(min(n, 8)) }, `"resourceVersion":"15"`},
		"Another":     {"It was deleted, and there is another one.", another(0), another, ""},
		"AnotherThen": {"It is by the time that it is written.", version(0), another, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, n := &strict{cluster: &cluster{policies: fixture.Documents[v1alpha1.AllowancePolicy](t, scaling)}}, 0
				c.live = []*unstructured.Unstructured{manifest(t, twoScaled), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}
				c.meanwhile = func() {
					n++
					c.live[0] = manifest(t, tc.there(n))
				}

				judge, scaler := c.judge(t, time.Now()), webhook.NewScaler(c.mapper())
				judge.Live = c

				scale(t, judge, scaler)

				c.mu.Lock()
				c.live[0] = manifest(t, tc.stored)
				c.mu.Unlock()

				begun := time.Now()

				follow(t, scaler)

				all := strings.Join(c.patches, "\n")
				if took := time.Since(begun); took > soon || tc.written == "" && all != "" || !strings.Contains(all, tc.written) || len(c.patches) > 1 {
					t.Errorf("%s\nwrote %q after %s", tc.reason, all, took)
				}
			})
		})
	}
}
