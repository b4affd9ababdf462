// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// thing defines the XR of the tests below.
const thing = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: string}, color: {type: string, default: red}, deep: {type: object, properties: {a: {type: string}, b: {type: string}}}}
          status:
            type: object
            properties: {id: {type: string}}
`

// instance defines the managed resource of the tests below.
const instance = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: instances.rds.example.org}
spec:
  group: rds.example.org
  names: {kind: Instance, plural: instances}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              forProvider:
                type: object
                x-kubernetes-validations: [{rule: "!has(oldSelf.zone) || self.zone == oldSelf.zone"}]
                properties:
                  size: {type: string}
                  zone: {type: string}
                  engine: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
                  disk: {type: string, description: "Kind of disk. Changing this forces a new resource to be created."}
                  tags: {type: object, additionalProperties: {type: string}}
              providerConfigRef: {type: object, properties: {name: {type: string}}}
`

// composing is a Composition of things with one managed resource, of which these are the
// patches.
func composing(patches string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: patches}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets: [{name: sizes, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}]}]
      resources:
      - {name: db, base: {apiVersion: rds.example.org/v1, kind: Instance, spec: {forProvider: {}}}, patches: [%s]}
  - {step: kausality, functionRef: {name: function-kausality}}
`, patches)
}

// short writes policies in a line each.
func short(s suggestion.Suggestion) string {
	var out strings.Builder

	for _, p := range s.Policies {
		spec := p.Policy.Spec
		fmt.Fprintf(&out, "%s %v:", spec.Match.Kind, spec.Match.Fields)

		for _, subject := range spec.Subjects {
			fmt.Fprintf(&out, " %s", subject.Name)
		}

		out.WriteString(" ->")

		for _, a := range spec.Allow {
			fmt.Fprintf(&out, " %s%s %v", a.Kind, strings.TrimSuffix(string(a.Relation), "Child"), a.Mutations)
		}

		out.WriteString("\n")
	}

	return out.String()
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}

	return strings.Join(list, "\n") + "\n"
}

func texts(problems []suggestion.Problem) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.String()
	}

	return out
}

// materialOf sorts objects, the Composition that is suggested for first.
func materialOf(t *testing.T, given ...string) suggestion.Material {
	t.Helper()

	var out suggestion.Material

	for _, text := range given {
		for _, u := range objects(t, []byte(text)) {
			out = with(out, u)
		}
	}

	out.Composition = out.Compositions[0]

	return out
}

func with(m suggestion.Material, u *unstructured.Unstructured) suggestion.Material {
	switch u.GetKind() {
	case "Composition":
		m.Compositions = append(m.Compositions, u)
	case "CompositeResourceDefinition":
		m.Definitions = append(m.Definitions, u)
	case "CustomResourceDefinition":
		m.Kinds = append(m.Kinds, u)
	}

	return m
}
