// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestEveryRecipeOfTheCookbookApplies has the API server read each YAML
// block of the page.
func TestEveryRecipeOfTheCookbookApplies(t *testing.T) {
	t.Parallel()

	raw, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}

	c := somebody(t)
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?\n)```\n").FindAllStringSubmatch(string(raw), -1)

	if len(blocks) < 10 {
		t.Errorf("%d recipes, want at least 10", len(blocks))
	}

	for _, block := range blocks {
		objects := world.Parse(t, []byte(block[1]))
		if len(objects) == 0 {
			t.Errorf("nothing is in\n%s", block[1])
		}

		for _, u := range objects {
			if defines(objects, u) {
				continue // Nobody serves it yet: test/refusal holds it to the schema.
			}

			switch u.GroupVersionKind().Group {
			case v1alpha1.Group, rbacv1.GroupName, extv1.GroupName, corev1.GroupName:
			default:
				t.Errorf("%s %q is none of our kinds, no role, and no parameter", u.GetKind(), u.GetName())
			}

			if u.GetNamespace() != "" {
				u.SetNamespace(metav1.NamespaceDefault) // Whose is in the recipe is the reader's.
			}

			if err := dryRun(t.Context(), c, u); err != nil {
				t.Errorf("%s %q: %v", u.GetKind(), u.GetName(), err)
			}
		}
	}
}

// defines reports whether the CRD of an object is among those of its recipe.
func defines(recipe []*unstructured.Unstructured, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(recipe, func(crd *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")

		return crd.GetKind() == "CustomResourceDefinition" && kind == u.GetKind() && group == u.GroupVersionKind().Group
	})
}
