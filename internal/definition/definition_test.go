// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/internal/definition"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const bucket = `
metadata: {name: buckets.s3.example.org}
spec:
  group: s3.example.org
  scope: Cluster
  names: {kind: Bucket, plural: buckets, categories: [managed]}
  versions:
  - name: v1beta1
    served: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {old: {type: string}}}}}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              managementPolicies: {type: array, items: {type: string}}
              forProvider:
                type: object
                x-kubernetes-preserve-unknown-fields: true
                properties: {port: {x-kubernetes-int-or-string: true}}
  - name: v2
    served: false
    schema: {openAPIV3Schema: {type: object}}
`

const xdatabases = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xdatabases.example.org}
spec:
  group: example.org
  names: {kind: XDatabase, plural: xdatabases}
  claimNames: {kind: DatabaseClaim, plural: databaseclaims}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}
`

// served are the kinds of the groups of the tests.
func served(k *definition.Kinds) []kind.Served {
	return slices.DeleteFunc(slices.Clone(k.Served()), func(s kind.Served) bool { return !strings.HasSuffix(s.GVK.Group, "example.org") })
}

// fields are those of the spec of a kind.
func fields(t *testing.T, k *definition.Kinds, group, version, name string) []string {
	t.Helper()

	s := k.Schema(schema.GroupVersionKind{Group: group, Version: version, Kind: name})
	if s == nil {
		return nil
	}

	return slices.Sorted(maps.Keys(s.Properties["spec"].Properties))
}

func TestACRDDefinesAKindInItsPreferredVersion(t *testing.T) {
	t.Parallel()

	k := definition.NewKinds()

	// That it is there twice makes no two kinds of it.
	for range 2 {
		if err := k.AddCRD(&fixture.Documents[extv1.CustomResourceDefinition](t, bucket)[0]); err != nil {
			t.Fatal(err)
		}
	}

	want := []kind.Served{{GVK: schema.GroupVersionKind{Group: "s3.example.org", Version: "v1", Kind: "Bucket"}, Resource: "buckets", Managed: true}}
	if diff := cmp.Diff(want, served(k)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	for version, want := range map[string][]string{"v1": {"forProvider", "managementPolicies"}, "v1beta1": {"old"}, "v2": nil} {
		if diff := cmp.Diff(want, fields(t, k, "s3.example.org", version, "Bucket")); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", version, diff)
		}
	}

	s := k.Schema(schema.GroupVersionKind{Group: "s3.example.org", Version: "v1", Kind: "Bucket"})
	provider := s.Properties["spec"].Properties["forProvider"]

	if open, _ := provider.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); !open {
		t.Error("what has unknown fields does not")
	}
}

func TestAnXRDDefinesAnXRAndAClaim(t *testing.T) {
	t.Parallel()

	gvk := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: name}
	}

	cases := map[string]struct {
		reason   string
		xrd      string
		want     []kind.Served
		composed []check.Composed
		fields   map[string]string
	}{
		"V1": {
			reason: "Of version v1 an XR refers to its Claim.",
			xrd:    xdatabases,
			want: []kind.Served{
				{GVK: gvk("DatabaseClaim"), Resource: "databaseclaims", Crossplane: true, Owns: true},
				{GVK: gvk("XDatabase"), Resource: "xdatabases", Crossplane: true, Owns: true},
			},
			composed: []check.Composed{{Parent: gvk("DatabaseClaim").GroupKind(), Child: gvk("XDatabase").GroupKind(), Alone: true}},
			fields:   map[string]string{"XDatabase": "claimRef", "DatabaseClaim": "resourceRef"},
		},
		"V2": {
			reason: "Of version v2 it is in a namespace, and what is Crossplane's is below spec.crossplane.",
			xrd:    strings.Replace(strings.Replace(xdatabases, "crossplane.io/v1", "crossplane.io/v2", 1), "  claimNames: {kind: DatabaseClaim, plural: databaseclaims}\n", "", 1),
			want:   []kind.Served{{GVK: gvk("XDatabase"), Resource: "xdatabases", Crossplane: true, Owns: true}},
			fields: map[string]string{"XDatabase": "crossplane"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			raw, err := yaml.YAMLToJSON([]byte(tc.xrd))
			if err != nil {
				t.Fatal(err)
			}

			k := definition.NewKinds()
			if err := k.AddXRD(raw); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, served(k)); diff != "" {
				t.Errorf("%s\nkinds: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.composed, k.Composed()); diff != "" {
				t.Errorf("%s\ncomposed: -want, +got:\n%s", tc.reason, diff)
			}

			for name, field := range tc.fields {
				got := fields(t, k, "example.org", "v1", name)
				if !slices.Contains(got, field) || !slices.Contains(got, "size") {
					t.Errorf("%s\n%s has %v, want %s and size", tc.reason, name, got, field)
				}
			}
		})
	}
}

func TestAnXRDWithoutASchemaIsAnError(t *testing.T) {
	t.Parallel()

	k := definition.NewKinds()
	if err := k.AddXRD([]byte(`{"spec": {"group": "example.org", "names": {"kind": "X"}, "versions": [{"name": "v1", "served": true}]}}`)); err == nil {
		t.Error("no error")
	}
}

func TestACompositionTellsWhatAnXRIsMadeOf(t *testing.T) {
	t.Parallel()

	raw, err := yaml.YAMLToJSON([]byte(`
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XDatabase}
  pipeline:
  - step: patches
    functionRef: {name: function-patch-and-transform}
    input: {kind: Resources, resources: [{name: a, base: {apiVersion: s3.example.org/v1, kind: Bucket}}, {name: b}]}
  - step: template
    functionRef: {name: function-go-templating}
    input: {kind: GoTemplate, resources: "not a list"}
  - step: ready
    functionRef: {name: function-auto-ready}
`))
	if err != nil {
		t.Fatal(err)
	}

	k := definition.NewKinds()
	if err := k.AddComposition(raw); err != nil {
		t.Fatal(err)
	}

	want := []check.Composed{{
		Parent: schema.GroupKind{Group: "example.org", Kind: "XDatabase"}, Child: schema.GroupKind{Group: "s3.example.org", Kind: "Bucket"},
	}}
	if diff := cmp.Diff(want, k.Composed()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWhatNobodyGovernsIsNoKind(t *testing.T) {
	t.Parallel()

	crd := fixture.Documents[extv1.CustomResourceDefinition](t, strings.ReplaceAll(bucket, "s3.example.org", "kausality.io"))[0]

	k := definition.NewKinds()
	before := len(k.Served())

	if err := k.AddCRD(&crd); err != nil {
		t.Fatal(err)
	}

	if len(k.Served()) != before {
		t.Error("a kind of ours can be governed")
	}
}
