// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A Composition that gives a resource another name, and its object none, has
// Crossplane delete the object and apply to it what it wishes under the new name.
func TestAnotherNameInTheCompositionMakesNoNewObject(t *testing.T) {
	allowing := func(mutations ...string) string {
		list := make([]string, 0, len(mutations))
		for _, m := range mutations {
			list = append(list, "{kind: Deployment, mutation: "+m+", generation: 13, initiator: hans, id: '13.0', source: {type: Policy}}")
		}

		return strings.NewReplacer("annotations: {", `annotations: {kausality.io/allowances: "[`+strings.Join(list, ", ")+`]", `,
			"uid: xr-uid, generation: 12", "uid: xr-uid, generation: 13").Replace(steadyXApp)
	}

	apache := strings.Replace(wishedDeployment, "nginx", "apache", 1)

	for name, tc := range map[string]struct {
		reason, xr, input string
		wished            map[string]string
		want              map[string]string
		told              []string
	}{
		"Unasked": {
			"It is a deletion and a creation.", steadyXApp, "",
			map[string]string{"web": apache},
			map[string]string{"d": "nginx"},
			[]string{"2 changes held: ", "deletion of Deployment d; ", "creation of Deployment of composed resource web"},
		},
		"OnlyCreate": {
			"Who may create one may not change what is there.", allowing("create"), "",
			map[string]string{"web": apache},
			map[string]string{"d": "nginx"},
			[]string{"1 change held"},
		},
		"OnlyDelete": {
			"It is not deleted where it may not be made anew.", allowing("delete"), "",
			map[string]string{"web": apache},
			map[string]string{"d": "nginx"},
			[]string{"1 change held: creation of Deployment of composed resource web; "},
		},
		"Both": {
			"It is deleted first.", allowing("create", "delete"), "",
			map[string]string{"web": apache},
			map[string]string{},
			[]string{"generation 13: in progress"},
		},
		"BuiltUp": {
			"Who builds up an XR deletes nothing.", freshXApp, "",
			map[string]string{"web": apache},
			map[string]string{"d": "nginx"},
			[]string{"1 change held"},
		},
		"Twice": {
			"Under two names each would undo the other.", allowing("create"), "",
			map[string]string{"d": wishedDeployment, "web": apache},
			map[string]string{"d": "nginx"},
			[]string{"1 change held: creation of Deployment of composed resource web; composed resource d is Deployment d already: "},
		},
		"TwoNames": {
			"Under two new names it is told of the first, in every run.", steadyXApp, "",
			map[string]string{"web": apache, "app": apache, "site": apache},
			map[string]string{"d": "nginx"},
			[]string{"creation of Deployment of composed resource app"},
		},
		"Audited": {
			"Nothing is held.", steadyXApp, "mode: Audit",
			map[string]string{"d": wishedDeployment, "web": apache},
			map[string]string{"d": "nginx", "web": "apache"},
			[]string{"2 changes would be held"},
		},
		"AnotherObject": {
			"What is called otherwise is another object.", allowing("create"), "",
			map[string]string{"d": wishedDeployment, "web": strings.Replace(apache, "name: d,", "name: e,", 1)},
			map[string]string{"d": "nginx", "web": "apache"},
			[]string{"generation 13: in progress"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, freshXApp, "", "", tc.input)
			req.Observed.Composite = toResource(t, fromYAML(t, tc.xr))
			req.Observed.Resources = map[string]*fnv1.Resource{"d": toResource(t, composed(t, storedDeployment, fieldsOfDeployment))}

			req.Desired.Resources = map[string]*fnv1.Resource{}
			for name, text := range tc.wished {
				req.Desired.Resources[name] = toResource(t, fromYAML(t, text))
			}

			rsp := run(t, req)
			got := map[string]string{}

			for _, name := range slices.Sorted(maps.Keys(rsp.GetDesired().GetResources())) {
				list := resource.List(rsp.GetDesired().GetResources()[name].GetResource().AsMap(), "spec", "template", "spec", "containers")
				for _, c := range list {
					m, _ := c.(map[string]any)
					got[name], _ = m["image"].(string)
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nimages, -want, +got:\n%s", tc.reason, diff)
			}

			message := rsp.GetConditions()[0].GetMessage()
			for _, want := range tc.told {
				if !strings.Contains(message, want) {
					t.Errorf("%s\ncondition: %q\nwant: %q", tc.reason, message, want)
				}
			}
		})
	}
}
