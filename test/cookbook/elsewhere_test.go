// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
)

// An elsewhere is a test that plays the rest of a recipe: what takes Crossplane, its functions or a
// provider.
type elsewhere struct{ dir, test string }

// others has the plays whose rest is played elsewhere, by anchor. Those with scenarios of gates are among
// them.
func others() map[string]elsewhere {
	return map[string]elsewhere{
		"deleting-a-root-with-what-it-stands-for":                     {"e2e", "TestAnAllowedDeletionEndsWithNothingLeft"},
		"another-engine-is-another-database":                          {"e2e", "TestAnExternalObjectIsMadeAnewUnderDeleteAndCreateAlone"},
		"two-levels-of-composite-resources":                           {"e2e", "TestAChangePassesTwoLevelsOfCompositeResources"},
		"a-slow-provider":                                             {"e2e", "TestAPolicySaysWhenItsGatesClose"},
		"a-new-version-of-a-composition":                              {"e2e", "TestACompositionUpdateUnderAWindowTouchesWhatItSelects"},
		"while-a-controller-of-a-certain-generation-runs":             {"e2e", "TestAWindowIsInForceOnlyOnceItsControllerIsThatFar"},
		"a-new-version-of-a-provider-or-drift-that-is-to-be-repaired": {"e2e", "TestAWindowForTheOutsideLetsARepairOfDriftThroughOnce"},
		"terraform-applies-what-somebody-asked-for":                   {"examples", "TestEachExampleIsAsItsREADMEShows"},
		"argo-cd-syncs-what-somebody-asked-for":                       {"examples", "TestEachExampleIsAsItsREADMEShows"},
	}
}

// TestTheRestIsPlayedElsewhere by tests that are there.
func TestTheRestIsPlayedElsewhere(t *testing.T) {
	all := recipes(t)
	files := cookbook.Plays(policytest.Disk(), dir, all)

	for anchor, e := range others() {
		if !slices.ContainsFunc(all, func(r cookbook.Recipe) bool { return r.Anchor == anchor }) {
			t.Errorf("docs/cookbook.md has no recipe with the anchor %s", anchor)
		}

		if !has(t, e) {
			t.Errorf("%s: test/%s has no %s", anchor, e.dir, e.test)
		}
	}

	for _, r := range all {
		play, err := cookbook.ReadPlay(files, dir, r)
		if err != nil {
			t.Fatal(err)
		}

		gates := slices.ContainsFunc(play.Scenarios, func(s policytest.Scenario) bool { return s.Gate != nil })
		if _, ok := others()[r.Anchor]; gates && !ok {
			t.Errorf("%s: no test opens its gates", r.Anchor)
		}
	}
}

// has reports whether a test is there.
func has(t *testing.T, e elsewhere) bool {
	t.Helper()

	sources, err := filepath.Glob(filepath.Join("..", e.dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}

	name := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(e.test) + `\(t \*testing\.T\)`)

	return slices.ContainsFunc(sources, func(file string) bool {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		return name.Match(raw)
	})
}
