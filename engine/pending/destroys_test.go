// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestWhatDestroysSomething(t *testing.T) {
	cases := map[string]struct {
		object, field string
		want          bool
	}{
		"The deletion of a managed resource":             {object: "{apiVersion: rds.example.org/v1, kind: Instance, spec: {forProvider: {}}}", field: "delete", want: true},
		"Not its update":                                 {object: "{apiVersion: rds.example.org/v1, kind: Instance, spec: {forProvider: {}}}", field: "spec.forProvider.size"},
		"Not its creation":                               {object: "{apiVersion: rds.example.org/v1, kind: Instance, spec: {forProvider: {}}}", field: "create"},
		"The deletion of an XR":                          {object: "{apiVersion: example.org/v1, kind: Lab, spec: {crossplane: {}}}", field: "delete", want: true},
		"The deletion of a Claim":                        {object: "{apiVersion: example.org/v1, kind: Store, metadata: {namespace: a}, spec: {resourceRef: {apiVersion: example.org/v1, kind: XStore, name: x}}}", field: "delete", want: true},
		"The deletion of a claim on a volume":            {object: "{apiVersion: v1, kind: PersistentVolumeClaim}", field: "delete", want: true},
		"The deletion of a volume":                       {object: "{apiVersion: v1, kind: PersistentVolume}", field: "delete", want: true},
		"The deletion of a namespace":                    {object: "{apiVersion: v1, kind: Namespace}", field: "delete", want: true},
		"The deletion of a Secret":                       {object: "{apiVersion: v1, kind: Secret}", field: "delete", want: true},
		"Not of one of another group":                    {object: "{apiVersion: vault.example.org/v1, kind: Secret}", field: "delete"},
		"Not of what can be made again":                  {object: "{apiVersion: v1, kind: ConfigMap}", field: "delete"},
		"Not of what is known by its kind, and is plain": {field: "delete"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var (
				u  *unstructured.Unstructured
				gk schema.GroupKind
			)

			if tc.object != "" {
				u = fixture.Parse(t, tc.object)
				gk = u.GroupVersionKind().GroupKind()
			}

			if got := pending.Destroys(gk, u, tc.field); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
