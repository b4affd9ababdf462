// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
)

// block is a recipe of a heading.
func block(text string) string { return "\n```yaml\n" + text + "```\n" }

const sizes = `apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: sizes}
spec:
  match: {kind: Widget, fields: [spec.size]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: Part, mutations: [spec.size]}]
`

func TestAPageHasOneBlockForEachRecipe(t *testing.T) {
	cases := map[string]struct {
		reason, page, want string
	}{
		"none":    {reason: "A heading without a block is no recipe.", page: "### A\n\ntext\n\n### B\n" + block("b: 1\n"), want: `recipe "A" has no YAML block`},
		"two":     {reason: "Of two blocks it is not known which one is played.", page: "### A\n" + block("a: 1\n") + block("b: 1\n"), want: "line 7: a YAML block that is not the only one of a recipe"},
		"outside": {reason: "A block under no heading is played by nobody.", page: "## A\n" + block("a: 1\n"), want: "line 3: a YAML block that is not the only one of a recipe"},
		"twice":   {reason: "Two recipes of a name have one anchor.", page: "### A\n" + block("a: 1\n") + "### A\n" + block("a: 1\n"), want: `line 6: there is another recipe "A"`},
		"good":    {reason: "Blocks of other languages are no recipes.", page: "### A, or b\n" + block("a: 1\n") + "```console\n### c\n```\n"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := cookbook.Read(tc.page)
			if text := errorText(err); text != tc.want {
				t.Errorf("%s\nRead: %q, want %q", tc.reason, text, tc.want)
			}

			if want := []cookbook.Recipe{{Heading: "A, or b", Anchor: "a-or-b", Line: 3, Text: "a: 1\n"}}; err == nil && cmp.Diff(want, got) != "" {
				t.Errorf("%s\nRead: -want, +got:\n%s", tc.reason, cmp.Diff(want, got))
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}

const (
	may = `May.
-- request.yaml --
{policies: [recipe], user: {name: hans, groups: [platform-team]}}
-- old.yaml --
{apiVersion: v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}
-- new.yaml --
{spec: {size: 2}}
-- want.yaml --
allowed: true
`
	mayNot = `May not.
-- request.yaml --
{policies: [recipe], user: {name: anna}}
-- old.yaml --
{apiVersion: v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}
-- new.yaml --
{spec: {size: 2}}
-- want.yaml --
allowed: false
`
)

// TestAPlayShowsAllOfItsRecipe or says what is missing.
func TestAPlayShowsAllOfItsRecipe(t *testing.T) {
	cases := map[string]struct {
		reason string
		recipe string
		plays  map[string]string
		want   []string
	}{
		"all": {reason: "Both are shown.", recipe: sizes, plays: map[string]string{"a/may.txtar": may, "a/not.txtar": mayNot}},
		"none": {
			reason: "A new recipe has no play yet.", recipe: sizes, plays: map[string]string{"b/may.txtar": may},
			want: []string{`recipe "A" has no play t/a: add scenarios that show what it allows, and what it does not`},
		},
		"never refused": {
			reason: "Somebody is to be refused.", recipe: sizes, plays: map[string]string{"a/may.txtar": may},
			want: []string{"no scenario shows what the recipe does not allow", "spec: sizes: never refused", "spec.match.fields[0]: spec.size: never refused", "Group platform-team: never refused"},
		},
		"never allowed": {
			reason: "Somebody is to be allowed something.", recipe: sizes, plays: map[string]string{"a/not.txtar": mayNot},
			want: []string{"no scenario shows what the recipe allows", "never allowed", "sizes: spec.size of a Part"},
		},
		"condition": {
			reason: "A condition is to be false once.", plays: map[string]string{"a/may.txtar": may, "a/not.txtar": mayNot},
			recipe: strings.Replace(sizes, "fields: [spec.size]", "fields: [spec.size], cel: ['object.spec.size < 3']", 1),
			want:   []string{"spec.match.cel[0]: object.spec.size < 3: never refused"},
		},
		"Enforcement": {
			reason: "All objects are to decide something.", plays: map[string]string{"a/may.txtar": strings.Replace(may, "policies:", "resource: widgets, policies:", 1), "a/not.txtar": strings.Replace(mayNot, "policies:", "resource: widgets, policies:", 1)},
			recipe: sizes + "---\n" + "apiVersion: kausality.io/v1alpha1\nkind: Enforcement\nmetadata: {name: e}\nspec:\n  match: {resourceRules: [{apiGroups: [other], resources: [others]}]}\n  validationActions: [Deny]\n",
			want:   []string{`Enforcement "e" decides nothing`},
		},
		"wrong": {
			reason: "What is decided otherwise is said.", recipe: strings.Replace(sizes, "platform-team", "another-team", 1),
			plays: map[string]string{"a/may.txtar": may, "a/not.txtar": mayNot},
			want:  []string{"t/a/may.txtar: May."},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recipes, err := cookbook.Read("### A\n" + block(tc.recipe))
			if err != nil {
				t.Fatal(err)
			}

			files := fstest.MapFS{"t/base/x.yaml": {}}
			for name, text := range tc.plays {
				files["t/"+name] = &fstest.MapFile{Data: []byte(text)}
			}

			said := check(t, cookbook.Plays(files, "t", recipes), recipes[0])
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("%s\nIt does not say %q, but\n%s", tc.reason, want, said)
				}
			}

			if (said == "") != (len(tc.want) == 0) {
				t.Errorf("%s\nIt says\n%s", tc.reason, said)
			}
		})
	}
}

// check is all that is wrong with a play.
func check(t *testing.T, files policytest.Files, r cookbook.Recipe) string {
	t.Helper()

	play, err := cookbook.ReadPlay(files, "t", r)
	if err != nil {
		return err.Error()
	}

	wrong, err := play.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return strings.Join(wrong, "\n")
}

// TestARecipeIsMovedInTime as a whole, so that what a scenario shows of another time holds now.
func TestARecipeIsMovedInTime(t *testing.T) {
	then := time.Date(2027, time.January, 11, 12, 0, 0, 0, time.UTC)
	now := time.Date(2026, time.June, 1, 20, 30, 0, 0, time.UTC)

	in := cookbook.Recipe{Text: `{until: "2027-01-11T13:00:00Z", cel: "now.getHours('Europe/Berlin') > 3"}`}

	got, err := in.Moved(then, now)
	if err != nil {
		t.Fatal(err)
	}

	// In that zone it is thirteen o'clock, of the same day of the week.
	if want := `{until: "2026-06-01T21:30:00Z", cel: "(now + duration('19326600s')).getHours() > 3"}`; got.Text != want {
		t.Errorf("Moved: %s, want %s", got.Text, want)
	}
}
