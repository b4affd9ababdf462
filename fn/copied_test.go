// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A Composition that copies all annotations of its XR copies ours, too. They say
// nothing of what it composes.
func TestACompositionWritesNoneOfOurAnnotations(t *testing.T) {
	copied := map[string]any{"team": "a"}
	for _, key := range []string{"initialized", "edits", "held", "gate", "asked", "release", "allowances", "trace", "wish", "last-upgrade", "desired-policies", "management-policies"} {
		copied["kausality.io/"+key] = "[]"
	}

	for name, observed := range map[string]map[string]any{"Create": nil, "Update": composed(t, storedDeployment, fieldsOfDeployment)} {
		t.Run(name, func(t *testing.T) {
			xr := freshXApp
			if observed != nil {
				xr = steadyXApp
			}

			a := newApp(t, xr, wishedDeployment, observed)
			resource.Map(a.wished, "metadata")["annotations"] = copied

			rsp, _ := a.run("")
			got := resource.Map(rsp.GetDesired().GetResources()["d"].GetResource().AsMap(), "metadata", "annotations")

			for key, v := range got {
				if text, _ := v.(string); strings.HasPrefix(key, "kausality.io/") && text == "[]" {
					t.Errorf("%s is %q", key, text)
				}
			}

			if got["team"] != "a" {
				t.Errorf("annotations: %v", got)
			}
		})
	}
}
