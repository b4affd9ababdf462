// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestTrimKeepsWhatDecisionsRead(t *testing.T) {
	cases := map[string]struct {
		reason   string
		in, want string
	}{
		"Deployment": {
			reason: "Whether a rollout has finished is told by replicas and status, not by the template.",
			in: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, managedFields: [{manager: m}], labels: {a: b},
				annotations: {a: b, kausality.io/trace: t, kubectl.kubernetes.io/last-applied-configuration: x}},
				spec: {replicas: 2, template: {spec: {}}}, status: {replicas: 2}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {kausality.io/trace: t}}, spec: {replicas: 2}, status: {replicas: 2}}`,
		},
		"CustomResource": {
			reason: "Of a custom resource conditions and references tell.",
			in: `{apiVersion: a.example.org/v1, kind: XShop, metadata: {name: xs}, spec: {size: large, crossplane: {resourceRefs: [{name: c}]}, claimRef: {name: c}},
				status: {address: x, conditions: [{type: Ready}], observedGeneration: 2}}`,
			want: `{apiVersion: a.example.org/v1, kind: XShop, metadata: {name: xs}, spec: {crossplane: {resourceRefs: [{name: c}]}, claimRef: {name: c}},
				status: {conditions: [{type: Ready}], observedGeneration: 2}}`,
		},
		"Namespace": {
			reason: "Expressions see all of a namespace.",
			in:     `{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {a: b}, annotations: {a: b}, managedFields: []}}`,
			want:   `{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {a: b}, annotations: {a: b}}}`,
		},
		"Secret": {
			reason: "Data is nobody's business.",
			in:     `{kind: Secret, metadata: {name: s}, data: {password: eA==}, stringData: {a: b}}`,
			want:   `{kind: Secret, metadata: {name: s}}`,
		},
		"ManagedResource": {
			reason: "While its gate is closed nobody asks what a managed resource is like; that it is one must show, and which windows select it.",
			in: `{apiVersion: a.example.org/v1, kind: Bucket, metadata: {name: b, generation: 2, creationTimestamp: x, generateName: g, labels: {a: b},
				annotations: {a: b, kausality.io/trace: t, crossplane.io/paused: "true"}, ownerReferences: [{name: xs}], finalizers: [f]},
				spec: {forProvider: {size: 1}, managementPolicies: [Observe], deletionPolicy: Orphan, providerConfigRef: {name: p}},
				status: {atProvider: {size: 1}, conditions: [{type: Synced}], observedGeneration: 2}}`,
			want: `{apiVersion: a.example.org/v1, kind: Bucket, metadata: {name: b, generation: 2, creationTimestamp: x, labels: {a: b},
				annotations: {kausality.io/trace: t, crossplane.io/paused: "true"}, ownerReferences: [{name: xs}], finalizers: [f]},
				spec: {forProvider: {}, managementPolicies: [Observe], deletionPolicy: Orphan},
				status: {conditions: [{type: Synced}], observedGeneration: 2}}`,
		},
		"Claim": {
			reason: "An XR is compared with what its Claim asks for.",
			in: `{apiVersion: a.example.org/v1, kind: Shop, metadata: {name: s, namespace: shops},
				spec: {template: x, resourceRef: {apiVersion: a.example.org/v1, kind: XShop, name: xs}}}`,
			want: `{apiVersion: a.example.org/v1, kind: Shop, metadata: {name: s, namespace: shops},
				spec: {template: x, resourceRef: {apiVersion: a.example.org/v1, kind: XShop, name: xs}}}`,
		},
		"CompositionRevision": {
			reason: "Of a CompositionRevision it matters for what it is, and which functions it runs.",
			in: `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: r}, spec: {revision: 2, mode: Pipeline,
				compositeTypeRef: {apiVersion: a.example.org/v1, kind: XShop},
				pipeline: [{step: a, functionRef: {name: f}, input: {apiVersion: p/v1, kind: Resources, resources: [{name: r}]}}, {step: b, functionRef: {name: g}}]}}`,
			want: `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: r}, spec: {
				compositeTypeRef: {apiVersion: a.example.org/v1, kind: XShop},
				pipeline: [{functionRef: {name: f}, input: {apiVersion: p/v1}}, {functionRef: {name: g}}]}}`,
		},
		"LegacyXR": {
			reason: "What an XR is composed by, it says in one of two places.",
			in:     `{apiVersion: a.example.org/v1, kind: XShop, metadata: {name: xs}, spec: {size: large, compositionRevisionRef: {name: r}, claimRef: {name: c}}}`,
			want:   `{apiVersion: a.example.org/v1, kind: XShop, metadata: {name: xs}, spec: {compositionRevisionRef: {name: r}, claimRef: {name: c}}}`,
		},
		"Nothing": {
			reason: "An object without anything stays as it is.",
			in:     `{kind: Nothing}`,
			want:   `{kind: Nothing}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := object(t, tc.in)
			resource.Trim(got)

			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\nTrim, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
