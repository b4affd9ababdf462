// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

const (
	steadyApp = `
apiVersion: example.org/v1
kind: XApp
metadata: {name: app, uid: xr-uid, generation: 12, annotations: {kausality.io/initialized: "true"}}
spec: {size: large}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 12}
  - {type: Ready, status: "True", observedGeneration: 12}
  - {type: Kausality, status: "True", message: "generation 12: settled"}
`
	observedMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: d
  namespace: prod
  ownerReferences: [{apiVersion: example.org/v1, kind: XApp, name: app, uid: xr-uid, controller: true}]
  managedFields:
  - manager: apiextensions.crossplane.io/composed/0123
    operation: Apply
    fieldsV1: {"f:data": {"f:a": {}}}
data: {a: "1"}
`
	desiredMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: prod}, data: {a: "2"}}`

	excepting = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e}
spec:
  match: {resourceRules: [{apiGroups: [""], resources: [configmaps]}]}
  validationActions: [Deny]
  exceptions:
  - {name: x, subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}], mutations: [data], until: "2027-01-01T00:00:00Z", reason: trial}
`
)

func TestOnlyAnEnforcementThatSurelyGovernsExcepts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, enforcement, want string
	}{
		"Governs": {"It is about the object: what it excepts passes.", excepting, "2"},
		"Namespace": {
			"It is about other namespaces, as far as the function knows.",
			strings.Replace(excepting, "[configmaps]}]}", "[configmaps]}], namespaceSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}}", 1), "1",
		},
		"Condition": {
			"Its condition cannot be evaluated, so nobody knows.",
			excepting + `  matchConditions: [{name: test, expression: "object.metadata.labels['env'] == 'test'"}]`, "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, steadyApp, observedMap, desiredMap, "")
			req.RequiredResources["kausality.io/enforcements"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, tc.enforcement)}}

			got := run(t, req).GetDesired().GetResources()["database"].GetResource().AsMap()

			if data, _ := got["data"].(map[string]any); data["a"] != tc.want {
				t.Errorf("%s\ndata %v, want %q", tc.reason, got["data"], tc.want)
			}
		})
	}
}
