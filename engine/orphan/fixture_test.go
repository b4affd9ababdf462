// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// base is a managed resource at rest, below an XR bound to a Claim.
const base = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata:
  name: db-1
  namespace: shop
  uid: db-uid
  resourceVersion: "7"
  labels: {crossplane.io/composite: xr-old, crossplane.io/claim-name: old, crossplane.io/claim-namespace: shop, app: web}
  annotations:
    crossplane.io/composition-resource-name: database
    crossplane.io/external-name: prod-db
    kausality.io/gate: "{v: 1, state: Closed}"
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kubectl.kubernetes.io/last-applied-configuration: "{}"
  finalizers: [finalizer.managedresource.crossplane.io, kausality.io/deletion]
  ownerReferences:
  - {apiVersion: example.org/v1, kind: XDatabase, name: xr-old, uid: old-uid, controller: true, blockOwnerDeletion: true}
spec:
  managementPolicies: [Observe, LateInitialize]
  providerConfigRef: {kind: ClusterProviderConfig, name: aws}
  forProvider: {port: 5432, size: 9007199254740993}
status:
  atProvider: {arn: "arn:aws:rds:db", endpoint: db.example.org}
`

// object is the base with a merge patch.
func object(t *testing.T, patch string) *unstructured.Unstructured {
	t.Helper()

	return &unstructured.Unstructured{Object: merge(document(t, base), document(t, patch))}
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()

	raw, err := yaml.YAMLToJSON([]byte(text))
	out := map[string]any{}

	if err == nil {
		err = json.Unmarshal(raw, &out)
	}

	if err != nil {
		t.Fatal(err)
	}

	return out
}

// merge applies a merge patch (RFC 7386).
func merge(obj, patch map[string]any) map[string]any {
	if obj == nil {
		obj = map[string]any{}
	}

	for key, value := range patch {
		switch m, ok := value.(map[string]any); {
		case value == nil:
			delete(obj, key)
		case ok:
			old, _ := obj[key].(map[string]any)
			obj[key] = merge(old, m)
		default:
			obj[key] = value
		}
	}

	return obj
}

// nobody says that every owner is gone, everybody that none is.
func nobody(map[string]any) bool    { return true }
func everybody(map[string]any) bool { return false }
