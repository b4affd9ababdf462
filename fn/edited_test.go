// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

const openWindow = `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: upgrade}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2025-01-01T00:00:00Z"
  validUntil: "2027-01-01T00:00:00Z"
  allow: [{kind: ConfigMap, relation: Child, mutations: [data]}]
`

func TestAWindowCarriesNoEditAlong(t *testing.T) {
	edited := strings.Replace(steadyApp, `kausality.io/initialized: "true"`,
		`kausality.io/initialized: "true", kausality.io/edits: "[{field: spec.size, user: anna, from: small, since: 2025-12-31T00:00:00Z}]"`, 1)

	for name, tc := range map[string]struct{ xr, want, message string }{
		"Edited":   {edited, "1", "edited by anna: spec.size"},
		"Unedited": {steadyApp, "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, tc.xr, observedMap, desiredMap, "")
			req.RequiredResources["kausality.io/upgradeallowances"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, openWindow)}}

			rsp := run(t, req)
			got := rsp.GetDesired().GetResources()["database"].GetResource().AsMap()

			if data, _ := got["data"].(map[string]any); data["a"] != tc.want {
				t.Errorf("data %v, want %q", got["data"], tc.want)
			}

			if message := rsp.GetConditions()[0].GetMessage(); !strings.Contains(message, tc.message) {
				t.Errorf("condition %q does not say %q", message, tc.message)
			}
		})
	}
}
