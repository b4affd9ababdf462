// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/composition"
)

func TestQuantitiesOfBuiltInKindsAreComparedByValue(t *testing.T) {
	const observed = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  managedFields:
  - manager: apiextensions.crossplane.io/composed/6aa923b7fbecfc9cf7148036e209680c9de7e17acbac426e7ebda49398cb9de2
    operation: Apply
    fieldsV1:
      "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:name": {}, "f:env": {}, "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}}}}}}}
spec: {template: {spec: {containers: [{name: side}, {name: app, env: [{name: N, value: "1"}], resources: {limits: {cpu: "1", memory: 1Gi}}}]}}}
`

	for name, tc := range map[string]struct {
		limits, env string
		want        []string
	}{
		"Same":   {"{cpu: 1000m, memory: 1024Mi}", `"1"`, nil},
		"Number": {"{cpu: 1, memory: 1073741824}", `"1"`, nil},
		"Less":   {"{cpu: 900m, memory: 1Gi}", `"1"`, []string{"spec.template.spec.containers[1].resources.limits.cpu"}},
		"Text":   {"{cpu: 1000m, memory: 1Gi}", `"1.0"`, []string{"spec.template.spec.containers[1].env[0].value"}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: app, env: [{name: N, value: " + tc.env + "}], resources: {limits: " + tc.limits + "}}]}}}}"

			got := fields(composition.Decide(requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"), observed, desired)).Held)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held, -want, +got:\n%s", diff)
			}
		})
	}

	const custom = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}, spec: {limits: {cpu: %s}}}"

	got := fields(composition.Decide(requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"),
		edit(t, custom, "%s", `"1"`), edit(t, custom, "%s", "1000m"))).Held)
	if diff := cmp.Diff([]string{"spec.limits.cpu"}, got); diff != "" {
		t.Errorf("a kind whose fields nobody rewrites: held, -want, +got:\n%s", diff)
	}
}
