// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestOnlyAnXRIsBoundToAClaim(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           bool
	}{
		"XR": {
			reason: "What Crossplane makes of a Claim.", want: true,
			object: "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x}, spec: {claimRef: {apiVersion: example.org/v1, kind: Database, namespace: shop, name: db}}}",
		},
		"OtherVersion": {
			reason: "The definition's versions are of one group.", want: true,
			object: "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x}, spec: {claimRef: {apiVersion: example.org/v1alpha1, kind: Database, namespace: shop, name: db}}}",
		},
		"PersistentVolume": {
			reason: "A volume is bound to a PersistentVolumeClaim.",
			object: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: data, uid: u}}}",
		},
		"ReleasedVolume": {
			reason: "Freed for the next claim of that name, it has no UID.",
			object: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop, name: data}}}",
		},
		"ObjectBucket": {
			reason: "Of one group too, but with a UID.",
			object: "{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucket, metadata: {name: b}, spec: {claimRef: {apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, namespace: shop, name: b, uid: u}}}",
		},
		"IPAddress": {
			reason: "Cluster API's addresses name a claim beside them.",
			object: "{apiVersion: ipam.cluster.x-k8s.io/v1beta1, kind: IPAddress, metadata: {name: a, namespace: shop}, spec: {claimRef: {name: a}}}",
		},
		"Namespaced": {
			reason: "A Claim's XR has no namespace.",
			object: "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, namespace: shop}, spec: {claimRef: {apiVersion: example.org/v1, kind: Database, namespace: shop, name: db}}}",
		},
		"OtherGroup": {
			reason: "A Claim is of the group of its XR.",
			object: "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x}, spec: {claimRef: {apiVersion: example.com/v1, kind: Database, namespace: shop, name: db}}}",
		},
		"NoName": {
			reason: "A reference without a name refers to nothing.",
			object: "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x}, spec: {claimRef: {apiVersion: example.org/v1, kind: Database, namespace: shop}}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, tc.object)

			_, parent := resource.ParentOf(u)
			if got := resource.BoundToClaim(u); got != tc.want || parent != tc.want || resource.IsComposite(u) != tc.want {
				t.Errorf("%s\nBoundToClaim: %t, has a parent: %t, IsComposite: %t, want %t", tc.reason, got, parent, resource.IsComposite(u), tc.want)
			}
		})
	}
}
