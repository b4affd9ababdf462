// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook_test

import (
	"os"
	"slices"
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
)

const (
	page = "../../docs/cookbook.md"
	dir  = "testdata"
)

// recipes are those of the page.
func recipes(t *testing.T) []cookbook.Recipe {
	t.Helper()

	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	out, err := cookbook.Read(string(raw))
	if err != nil {
		t.Fatalf("docs/cookbook.md: %v", err)
	}

	if len(out) < 40 {
		t.Errorf("%d recipes, want at least 40", len(out))
	}

	return out
}

// TestEveryRecipeDoesWhatItsPlayShows and each has a play, which shows all of it.
func TestEveryRecipeDoesWhatItsPlayShows(t *testing.T) {
	all := recipes(t)
	files := cookbook.Plays(policytest.Disk(), dir, all)

	for _, r := range all {
		t.Run(r.Anchor, func(t *testing.T) {
			play, err := cookbook.ReadPlay(files, dir, r)
			if err != nil {
				t.Fatal(err)
			}

			wrong, err := play.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, text := range wrong {
				t.Errorf("docs/cookbook.md:%d: %s", r.Line, text)
			}
		})
	}
}

// TestEveryPlayHasARecipe on the page.
func TestEveryPlayHasARecipe(t *testing.T) {
	all := recipes(t)

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range entries {
		if e.IsDir() && e.Name() != "base" && !slices.ContainsFunc(all, func(r cookbook.Recipe) bool { return r.Anchor == e.Name() }) {
			t.Errorf("docs/cookbook.md has no recipe with the anchor %s", e.Name())
		}
	}
}
