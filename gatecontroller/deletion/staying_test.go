// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// managers makes Leftovers as often as the manager starts, and says how often something was counted by all of them.
func managers(t *testing.T, c client.Client) (started func() *Leftovers, counted func() int) {
	t.Helper()

	var all []*prometheus.Registry

	started = func() *Leftovers {
		all = append(all, prometheus.NewRegistry())

		e, err := NewLeftovers(all[len(all)-1], c, c, "kausality-system", gate.Options{}, time.Now)
		if err != nil {
			t.Fatal(err)
		}

		return e
	}
	counted = func() int {
		sum := 0.0

		for _, reg := range all {
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}

			for _, f := range families {
				for _, m := range f.GetMetric() {
					sum += m.GetCounter().GetValue()
				}
			}
		}

		return int(sum)
	}

	return started, counted
}

// TestItIsReportedOnceOfEachThatStays also where the parent is released once more after a failure, by another manager, and
// where that sees the child afterwards. Events of one object that relate to the same are counted as one.
func TestItIsReportedOnceOfEachThatStays(t *testing.T) {
	_, c, _ := leaving(t, nil)
	started, counted := managers(t, c)

	const owned = ", ownerReferences: [{apiVersion: shop.example.org/v1, kind: Wiki, name: handbook, uid: w, controller: true}]"

	parent := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Wiki, metadata: {name: handbook, uid: w}}")
	cache := fixture.Parse(t, strings.NewReplacer("name: b, uid: b", "name: cache, uid: c").Replace(bucket(owned, "managementPolicies: [Observe]")))
	db := fixture.Parse(t, strings.NewReplacer("name: b, uid: b", "name: db, uid: d").Replace(bucket(owned, "managementPolicies: [Observe]")))

	started().reportOrphaned(t.Context(), parent, cache, &decision.Decision{})

	for range 2 {
		e := started()
		e.reportOrphaned(t.Context(), parent, cache, &decision.Decision{})
		e.reportOrphaned(t.Context(), parent, db, &decision.Decision{})

		if err := e.reportOwnerGone(t.Context(), db, parentOf(t, db)); err != nil {
			t.Fatal(err)
		}
	}

	want := []string{"cache: handbook", "db: handbook", "handbook: cache", "handbook: db"}
	if diff := cmp.Diff(want, relations(t, c)); diff != "" || counted() != 2 {
		t.Errorf("counted %d, want 2; told, -want, +got:\n%s", counted(), diff)
	}

	// Its next parent is another one.
	next := fixture.Parse(t, "{apiVersion: shop.example.org/v1, kind: Wiki, metadata: {name: handbook, uid: w2}}")
	started().reportOrphaned(t.Context(), next, cache, &decision.Decision{})

	if n := len(told(t, c)); n != len(want)+2 || counted() != 3 {
		t.Errorf("%d events, counted %d", n, counted())
	}
}

// relations are what events are about, and what they relate to.
func relations(t *testing.T, c client.Client) []string {
	t.Helper()

	list := told(t, c)
	out := make([]string, 0, len(list))

	for _, e := range list {
		related := ""
		if e.Related != nil {
			related = e.Related.Name
		}

		out = append(out, e.Regarding.Name+": "+related)
	}

	slices.Sort(out)

	return out
}

// TestAnExternalObjectIsReportedOnceThatStays though its managed resource is released again after a failure, by another manager.
func TestAnExternalObjectIsReportedOnceThatStays(t *testing.T) {
	_, c, _ := leaving(t, nil)
	started, counted := managers(t, c)
	u := fixture.Parse(t, bucket(", namespace: a", "managementPolicies: [Observe]"))

	for range 2 {
		if err := started().record(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}

	if list := told(t, c); len(list) != 2 || counted() != 1 {
		t.Errorf("counted %d, told %v", counted(), list)
	}
}

// TestWhatCannotBeRecordedIsCounted each time: nobody knows whether it was before.
func TestWhatCannotBeRecordedIsCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil)
		},
	}).Build()
	started, counted := managers(t, c)
	parent, child := fixture.Parse(t, "{kind: Wiki, metadata: {name: handbook, uid: w}}"), fixture.Parse(t, bucket("", "managementPolicies: [Observe]"))

	for range 2 {
		started().reportOrphaned(t.Context(), parent, child, &decision.Decision{})
	}

	if counted() != 2 {
		t.Errorf("counted %d, want 2", counted())
	}
}
