// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package removal_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const (
	root     = "../.."
	example  = root + "/examples/claim-with-ticket"
	shop     = "default"
	function = "function-kausality"
)

// cluster is the stack, as its administrator and hans see it.
type cluster struct {
	client.Client

	hans client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	return &cluster{Client: world.Connect(t, running.Config()), hans: world.ConnectAs(t, running, "hans")}
}

// applyExample applies files of the example.
func (c *cluster) applyExample(t *testing.T, files ...string) {
	t.Helper()

	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(example, file))
		if err != nil {
			t.Fatal(err)
		}

		for _, u := range world.Parse(t, raw) {
			world.Apply(t, c, u, client.ForceOwnership)
		}
	}
}

// ungate takes the function out of the Composition.
func (c *cluster) ungate(t *testing.T) {
	t.Helper()

	u := world.Prototype(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "xdatabases.example.org"}, u); err != nil {
		t.Fatal(err)
	}

	steps := slices.DeleteFunc(resource.List(u.Object, "spec", "pipeline"), func(v any) bool {
		step, _ := v.(map[string]any)

		return resource.String(step, "functionRef", "name") == function
	})

	if err := unstructured.SetNestedSlice(u.Object, steps, "spec", "pipeline"); err != nil {
		t.Fatal(err)
	}

	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}
