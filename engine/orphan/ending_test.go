// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
)

func TestAnEndingIsReportedUnlessItWasAskedFor(t *testing.T) {
	t.Parallel()

	const granted = `metadata: {annotations: {kausality.io/allowances: "[{relation: External, mutations: [Delete], generation: 3, initiator: hans, id: '3.0', source: {type: Deletion}}]"}`

	cases := map[string]struct {
		reason, patch string
		want          orphan.Ending
	}{
		"Closed":   {"It is not allowed: the provider orphans it.", `{}`, orphan.LeftBehind},
		"Open":     {"The gate is open for Delete: the provider deletes it.", `spec: {managementPolicies: [Observe, Delete]}`, orphan.Asked},
		"All":      {"Everything is open.", `spec: {managementPolicies: ["*"]}`, orphan.Asked},
		"Composed": {"The Composition asked to orphan.", `metadata: {annotations: {kausality.io/desired-policies: '{"v":1,"policies":["Observe"]}'}}`, orphan.Asked},
		"Policy":   {"So did the older field.", `spec: {deletionPolicy: Orphan}`, orphan.Asked},
		"Released": {"So did a person.", `metadata: {annotations: {kausality.io/release: orphan}}`, orphan.Asked},
		"Granted":  {"The gate is going to open, while the provider is there to see it.", granted + `}`, orphan.Awaited},
		"Too late": {"The provider has let go already.", granted + `, finalizers: [kausality.io/deletion]}`, orphan.LeftBehind},
		"Unread": {
			"An allowance that cannot be read opens nothing.", `metadata: {annotations: {kausality.io/allowances: "{"}}`, orphan.LeftBehind,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := orphan.EndingOf(object(t, tc.patch)); got != tc.want {
				t.Errorf("%s\nending: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestIdentityIsWhatTheExternalSystemCallsIt(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		patch string
		want  map[string]string
	}{
		"Cloud":      {`{}`, map[string]string{"arn": "arn:aws:rds:db"}},
		"Kubernetes": {`status: {atProvider: {arn: null, manifest: {kind: ConfigMap, metadata: {name: a, namespace: b, uid: c}}}}`, map[string]string{"kind": "ConfigMap", "name": "a", "namespace": "b", "uid": "c"}},
		"Nothing":    {`status: null`, map[string]string{}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tc.want, orphan.Identity(object(t, tc.patch))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProviderConfigIsNamedWithItsKind(t *testing.T) {
	t.Parallel()

	for patch, want := range map[string]string{
		`{}`: "ClusterProviderConfig/aws",
		`spec: {providerConfigRef: {kind: null}}`: "aws",
		`spec: {providerConfigRef: null}`:         "",
	} {
		if got := orphan.ProviderConfig(object(t, patch)); got != want {
			t.Errorf("%s: got %q, want %q", patch, got, want)
		}
	}
}
