// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"os"
	"regexp"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			if group := u.GroupVersionKind().Group; group != v1alpha1.Group && group != rbacv1.GroupName && u.GetKind() != "ConfigMap" {
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
