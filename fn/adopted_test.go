// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// An XR that composes what was there before it did not wish that all along.
func TestWhatIsAdoptedIsNoBaseline(t *testing.T) {
	xr := strings.Replace(freshXApp, "generation: 12", "generation: 12, creationTimestamp: 2026-01-01T00:00:00Z", 1)
	wished := strings.Replace(wishedDeployment, "nginx", "apache", 1)

	for name, tc := range map[string]struct{ reason, stored, fields string }{
		"Remade": {
			"An XR of the same name applied it.",
			storedDeployment, fieldsOfDeployment,
		},
		"ByAnother": {
			"Crossplane applied it, for an XR of another name.",
			strings.Replace(storedDeployment, "META", strings.Replace(ofApp, "MANAGER", "another", 1), 1), fieldsOfDeployment,
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := composed(t, tc.stored, tc.fields)
			resource.Map(observed, "metadata")["creationTimestamp"] = "2025-01-01T00:00:00Z"

			a := newApp(t, xr, wished, observed)
			for range 2 {
				rsp, message := a.run("")
				if !strings.Contains(message, "1 change held: spec.template.spec.containers[0].image of Deployment d (nginx → apache); "+
					"no policy about XApp allows it. kubectl ") {
					t.Errorf("%s\ncondition: %q", tc.reason, message)
				}

				list := resource.List(rsp.GetDesired().GetResources()["d"].GetResource().AsMap(), "spec", "template", "spec", "containers")
				for _, c := range list {
					if m, _ := c.(map[string]any); m["image"] == "apache" {
						t.Errorf("%s\ncontainers: %v", tc.reason, list)
					}
				}
			}
		})
	}
}
