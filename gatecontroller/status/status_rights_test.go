// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

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
	have := &fixture.Roles{Of: map[string]bool{"replicasets": true, "pods": true}, Now: time.Unix(0, 0)}
	c.Rights = NewRights(have.Access())

	report := func() {
		c.Rights.Refresh(t.Context(), want, fixture.ServedKinds(), nil)

		if err := reportAll(t, c, inCluster(want, fixture.ServedKinds())); err != nil {
			t.Fatal(err)
		}
	}

	p, e := &v1alpha1.AllowancePolicy{}, &v1alpha1.Enforcement{}
	p.SetName(want.Policies[0].GetName())
	e.SetName(want.Enforcements[0].GetName())

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

	if !c.Rights.Missing() {
		t.Error("nothing would be looked at again soon")
	}

	reg := prometheus.NewRegistry()
	reg.MustRegister(c.Rights)

	if got := fixture.Gauges(t, reg, "kausality_missing_rights"); len(got) != 1 {
		t.Errorf("metric: %v", got)
	}

	// 2. Somebody gives it.
	have.Of["deployments"] = true
	have.Soon()
	report()

	if cond := stored(t, cluster, p, func() []metav1.Condition { return p.Status.Conditions }); cond.Reason != v1alpha1.ReasonInForce {
		t.Errorf("%+v", cond)
	}

	if c.Rights.Missing() {
		t.Error("something is still missing")
	}
}
