// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// lintedKinds are the managed resources that the unit tests of kubectl kausality lint check examples against.
const lintedKinds = "../../cmd/kubectl-kausality/testdata/crds/databases.yaml"

// TestTheProviderHasWhatTheExamplesAreLintedAgainst for those kinds are written by hand.
func TestTheProviderHasWhatTheExamplesAreLintedAgainst(t *testing.T) {
	world.Long(t)

	t.Parallel()

	raw, err := os.ReadFile(lintedKinds)
	if err != nil {
		t.Fatal(err)
	}

	objects, err := stack.ParseManifests(raw)
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d kinds, error %v", len(objects), err)
	}

	c := somebody(t)

	for _, u := range objects {
		object := world.Prototype(u.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKey{Name: u.GetName()}, object); err != nil {
			t.Fatal(err)
		}

		linted, served := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if err := errors.Join(
			runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, linted),
			runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, served),
		); err != nil {
			t.Fatal(err)
		}

		if linted.Spec.Scope != served.Spec.Scope {
			t.Errorf("%s: it is %s, want %s", u.GetName(), linted.Spec.Scope, served.Spec.Scope)
		}

		want, got := map[string]string{}, map[string]string{}
		fields(want, u.GetName(), *linted.Spec.Versions[0].Schema.OpenAPIV3Schema)
		fields(got, u.GetName(), *served.Spec.Versions[0].Schema.OpenAPIV3Schema)

		for path := range got {
			if _, ok := want[path]; !ok {
				delete(got, path)
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-linted, +served:\n%s", diff)
		}
	}
}

// fields collects the types of all fields of a schema, by their paths.
func fields(into map[string]string, path string, schema apiextensionsv1.JSONSchemaProps) {
	into[path] = schema.Type
	for name, property := range schema.Properties {
		fields(into, path+"."+name, property)
	}
}
