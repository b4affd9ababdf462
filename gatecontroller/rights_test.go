// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

// roles are the rights that we have, by resource; each may be done anything with.
type roles struct {
	of  map[string]bool
	now time.Time
}

func (r *roles) access() *access.Access {
	return access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return r.of[strings.Split(asked.Resource, "/")[0]], nil
	}, func() time.Time { return r.now })
}

// soon is when a denial is looked at again.
func (r *roles) soon() { r.now = r.now.Add(time.Minute) }

// stored is the Ready condition of an object, as it is stored.
func stored(t *testing.T, c client.Client, obj client.Object, conditions func() []metav1.Condition) metav1.Condition {
	t.Helper()

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}

	cond := meta.FindStatusCondition(conditions(), v1alpha1.ConditionReady)
	if cond == nil {
		t.Fatalf("%s has no condition", obj.GetName())
	}

	return *cond
}

func TestAPolicyAboutAKindWithoutRightsSaysSoAndComesIntoForceByItself(t *testing.T) {
	c, want, cluster := reporting(t, interceptor.Funcs{})
	have := &roles{of: map[string]bool{"replicasets": true, "pods": true}, now: time.Unix(0, 0)}
	c.rights = newRights(have.access())

	report := func() {
		c.rights.look(t.Context(), want, servedKinds(), nil)

		if err := c.reportAll(t.Context(), want, servedKinds(), servedKinds(), nil); err != nil {
			t.Fatal(err)
		}
	}

	p, e := &v1alpha1.AllowancePolicy{}, &v1alpha1.Enforcement{}
	p.SetName(want.policies[0].GetName())
	e.SetName(want.enforcements[0].GetName())

	// 1. Of Deployments there is no right.
	report()

	for _, cond := range []metav1.Condition{
		stored(t, cluster, p, func() []metav1.Condition { return p.Status.Conditions }),
		stored(t, cluster, e, func() []metav1.Condition { return e.Status.Conditions }),
	} {
		if cond.Status != metav1.ConditionFalse || cond.Reason != v1alpha1.ReasonRightsMissing ||
			!strings.Contains(cond.Message, "the manager may not get, list, patch and watch deployments.apps") ||
			!strings.Contains(cond.Message, right.Remedy) || strings.Contains(cond.Message, "replicasets") {
			t.Errorf("%+v", cond)
		}
	}

	if !c.rights.missing() {
		t.Error("nothing would be looked at again soon")
	}

	reg := prometheus.NewRegistry()
	reg.MustRegister(c.rights)

	if got := gauges(t, reg, "kausality_missing_rights"); len(got) != 1 {
		t.Errorf("metric: %v", got)
	}

	// 2. Somebody gives it.
	have.of["deployments"] = true
	have.soon()
	report()

	if cond := stored(t, cluster, p, func() []metav1.Condition { return p.Status.Conditions }); cond.Reason != v1alpha1.ReasonInForce {
		t.Errorf("%+v", cond)
	}

	if c.rights.missing() {
		t.Error("something is still missing")
	}
}

func TestAKindThatMayNotBeReadIsNotWatchedAndOthersAre(t *testing.T) {
	have := &roles{of: map[string]bool{"configmaps": true}, now: time.Unix(0, 0)}
	r := newRights(have.access())

	if got := r.readable(t.Context(), builtInAndCustom()); len(got) != 1 || got[0].resource != "configmaps" {
		t.Errorf("watched: %v, want configmaps", got)
	}

	// What is needed of what is watched is missed as well, though no policy names it;
	// CompositionRevisions are only read.
	revision := servedKind{gvk: resource.RevisionKind().WithVersion("v1"), resource: "compositionrevisions"}
	read := access.Asking(func(_ context.Context, asked right.Right) (bool, error) {
		return asked.Resource == "compositionrevisions" && asked.Verb != "patch", nil
	}, func() time.Time { return have.now })

	r = newRights(read)
	r.look(t.Context(), wanted{}, nil, append(builtInAndCustom(), revision))

	if len(r.lacks) != 2 || right.Has(r.lacks, revision.groupResource()) {
		t.Errorf("lacks: %v", r.lacks)
	}
}

func TestAWindowWithoutRightsSaysSo(t *testing.T) {
	cond := windowReadiness(&v1alpha1.UpgradeAllowance{}, nil, "the manager may not get a")
	if cond.Reason != v1alpha1.ReasonInvalid {
		t.Errorf("one that is not valid: %+v", cond)
	}

	u := documents[v1alpha1.UpgradeAllowance](t, `{metadata: {name: w}, spec: {
		serviceAccount: "system:serviceaccount:a:b", validUntil: "2100-01-01T00:00:00Z", allow: [{kind: Deployment, apiGroup: apps, mutations: [spec]}]}}`)[0]
	if cond := windowReadiness(&u, nil, ""); cond.Reason != v1alpha1.ReasonInForce {
		t.Fatalf("one with rights: %+v", cond)
	}

	cond = windowReadiness(&u, nil, "the manager may not get a")
	if cond.Reason != v1alpha1.ReasonRightsMissing || cond.Status != metav1.ConditionFalse || !strings.HasSuffix(cond.Message, ": the manager may not get a") {
		t.Errorf("%+v", cond)
	}
}

func TestNothingIsLookedThroughThatCouldNotBeLetGo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lister{}
	c := adopting(l, &now)
	have := &roles{of: map[string]bool{"yards": true}, now: now}
	c.opts.Access = have.access()

	if all, err := c.adopt(t.Context(), builtInAndCustom()); err != nil || !all || l.calls["ConfigMap"] != 0 || l.calls["Yard"] != 1 {
		t.Fatalf("adopt: %v, %v, %v", all, err, l.calls)
	}

	// Once there is a right it is, without waiting for as long as for what was.
	have.of["configmaps"] = true
	now = now.Add(adoptDenied)
	have.now = now

	if _, err := c.adopt(t.Context(), builtInAndCustom()); err != nil || l.calls["ConfigMap"] != 1 || l.calls["Yard"] != 1 {
		t.Errorf("adopt, with rights: %v, %v", err, l.calls)
	}
}

// TestAParentThatMayNotBeReadKeepsNobodyWaiting for a cache that would never be
// filled.
func TestAParentThatMayNotBeReadKeepsNobodyWaiting(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Yard"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.Add(gvk, meta.RESTScopeNamespace)

	have := &roles{of: map[string]bool{}, now: time.Unix(0, 0)}
	o := &owners{
		access:  have.access(),
		client:  fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).Build(),
		objects: whole{cached: waitsForEver{}},
	}

	child := prototype(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	child.SetName("child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Yard", Name: "y", UID: "u", Controller: new(true)}})

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()

	err := o.keep(ctx, child)
	if !errors.Is(err, access.ErrMissing) || !strings.Contains(err.Error(), `the parent of ConfigMap "child"`) ||
		!strings.Contains(err.Error(), "yards.example.org") || !strings.Contains(err.Error(), right.Remedy) {
		t.Errorf("keep: %v", err)
	}
}

// waitsForEver is a cache of what may not be listed.
type waitsForEver struct{ client.Reader }

func (waitsForEver) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()

	return ctx.Err()
}

// TestWhatMayNoLongerBeListedKeepsNoOtherKindFromBeingLetGo where somebody took the
// right away before the policy.
func TestWhatMayNoLongerBeListedKeepsNoOtherKindFromBeingLetGo(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Yard"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.org", Resource: "yards"}, "", errRefused)

	for name, tc := range map[string]struct {
		err, want error
	}{
		"Forbidden":   {err: forbidden},
		"Unavailable": {err: errUnavailable, want: errUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owners{live: denying{err: tc.err}}
			if err := o.releaseAll(t.Context(), gvk); !errors.Is(err, tc.want) {
				t.Errorf("releaseAll: %v, want %v", err, tc.want)
			}
		})
	}
}

// denying is an API server that answers with an error.
type denying struct {
	client.Reader

	err error
}

func (d denying) List(context.Context, client.ObjectList, ...client.ListOption) error { return d.err }
