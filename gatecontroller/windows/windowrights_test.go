// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAWindowWithoutRightsSaysSo(t *testing.T) {
	cond := windowReadiness(&v1alpha1.UpgradeAllowance{}, nil, "the manager may not get a", nil)
	if cond.Reason != v1alpha1.ReasonInvalid {
		t.Errorf("one that is not valid: %+v", cond)
	}

	u := fixture.Documents[v1alpha1.UpgradeAllowance](t, `{metadata: {name: w}, spec: {
		serviceAccount: "system:serviceaccount:a:b", validUntil: "2100-01-01T00:00:00Z", allow: [{kind: Deployment, apiGroup: apps, mutations: [spec]}]}}`)[0]
	if cond := windowReadiness(&u, nil, "", nil); cond.Reason != v1alpha1.ReasonInForce {
		t.Fatalf("one with rights: %+v", cond)
	}

	cond = windowReadiness(&u, nil, "the manager may not get a", nil)
	if cond.Reason != v1alpha1.ReasonRightsMissing || cond.Status != metav1.ConditionFalse || cond.Message != "the manager may not get a" {
		t.Errorf("%+v", cond)
	}
}
