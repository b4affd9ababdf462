// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestGatesAreReconciledOnceAWindowIsInForceOrNotAnyMore(t *testing.T) {
	window := func(change func(*v1alpha1.UpgradeAllowance)) *v1alpha1.UpgradeAllowance {
		u := &v1alpha1.UpgradeAllowance{}
		u.SetGeneration(1)
		change(u)

		return u
	}
	same := func(*v1alpha1.UpgradeAllowance) {}

	cases := map[string]struct {
		reason string
		change func(*v1alpha1.UpgradeAllowance)
		want   bool
	}{
		"Same":       {"Nothing has happened.", same, false},
		"Generation": {"It asks for something else.", func(u *v1alpha1.UpgradeAllowance) { u.SetGeneration(2) }, true},
		"MadeAgain":  {"It is another of the name.", func(u *v1alpha1.UpgradeAllowance) { u.SetUID("another") }, true},
		"Active":     {"It is in force.", func(u *v1alpha1.UpgradeAllowance) { u.Status.Active = true }, true},
		"Observed":   {"It was looked at.", func(u *v1alpha1.UpgradeAllowance) { u.Status.ObservedGeneration = 1 }, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := changed(window(same), window(tc.change)); got != tc.want {
				t.Errorf("%s\nchanged: %v", tc.reason, got)
			}
		})
	}

	if changed(window(same), &v1alpha1.AllowancePolicy{}) {
		t.Error("what is no window does not change")
	}
}

func TestAWindowIsAboutTheGatesThatItSelects(t *testing.T) {
	bucket := func(name, env string) string {
		return "{apiVersion: example.org/v1, kind: Bucket, metadata: {name: " + name + ", namespace: a, labels: {env: " + env + "}, " +
			"annotations: {kausality.io/gate: '{v: 1, state: Closed}'}}, " +
			"spec: {managementPolicies: [Observe], forProvider: {}, providerConfigRef: {name: default}}, status: {atProvider: {}}}"
	}
	f := watches(t, *fixture.Parse(t, bucket("x", "prod")), *fixture.Parse(t, bucket("y", "dev")))
	windows := fixture.Documents[v1alpha1.UpgradeAllowance](t,
		`{metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:crossplane-system:provider", selector: {matchLabels: {env: prod}},
			allow: [{relation: External, mutations: [Update]}]}}`,
		`{metadata: {name: other}, spec: {serviceAccount: "system:serviceaccount:crossplane-system:provider", allow: [{kind: Pod, mutations: [spec]}]}}`)

	for name, tc := range map[string]struct {
		reason string
		window client.Object
		want   []string
	}{
		"External": {"One that opens gates, those with its labels.", &windows[0], []string{"x"}},
		"Child":    {"One that opens none is about none.", &windows[1], nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string

			err := f.Watches.selected(t.Context(), served("Bucket")[0].GVK, []client.Object{tc.window}, func(key client.ObjectKey) { got = append(got, key.Name) })
			if err != nil {
				t.Fatal(err)
			}

			slices.Sort(got)
			same(t, tc.reason, tc.want, got)
		})
	}
}
