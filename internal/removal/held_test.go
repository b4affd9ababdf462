// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/internal/removal"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestWhatIsHeldHappensOnceNobodyHoldsIt(t *testing.T) {
	const bucket = `
apiVersion: aws.example.org/v1
kind: Bucket
metadata: {name: NAME, namespace: a, uid: NAME, generation: 7, annotations: {HELD kausality.io/desired-policies: '{"v":1,"policies":["*"]}',
  kausality.io/gate: '{"v":1,"state":"Closed","generation":7,"since":"2026-01-01T00:00:00Z","compared":"COMPARED"}'}}
spec: {managementPolicies: [Observe, LateInitialize], forProvider: {size: small}}
status: {atProvider: {size: OUTSIDE}}
`
	const xr = `
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: s, namespace: a, uid: s}
spec: {crossplane: {}}
status: {conditions: [{type: KausalityState, status: "False", message: '{"v":1,"changes":[
  {"ref":{"apiVersion":"aws.example.org/v1","kind":"Bucket","namespace":"a","name":"old","uid":"old"},"field":"delete","destroys":true},
  {"ref":{"apiVersion":"aws.example.org/v1","kind":"Bucket","namespace":"a","name":"drifted","uid":"drifted"},"field":"spec.forProvider.color","from":"red","to":"blue"},
  {"ref":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"a","name":"d","uid":"d"},"field":"spec.replicas","from":"1","to":"2"}]}'}]}
`
	of := func(name, held, outside string) *unstructured.Unstructured {
		sum := sha256.Sum256([]byte("spec.forProvider.size"))

		return fixture.Parse(t, strings.NewReplacer("NAME", name, "HELD", held, "OUTSIDE", outside, "COMPARED", base64.StdEncoding.EncodeToString(sum[:2])).Replace(bucket))
	}

	got := make([]string, 0, 4)
	for _, e := range removal.Held([]*unstructured.Unstructured{
		of("x", `kausality.io/held: '[{"field":"spec.forProvider.size","from":"small","to":"large","missing":"no"}]', `, "small"),
		of("old", "", "small"), of("drifted", "", "huge"), fixture.Parse(t, xr),
	}) {
		got = append(got, removal.Describe(e))
	}

	want := []string{
		"Bucket a/old: it is deleted, with its external object",
		"Bucket a/drifted: spec.forProvider.size is changed from huge to small",
		"Bucket a/x: spec.forProvider.size is changed from small to large",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
