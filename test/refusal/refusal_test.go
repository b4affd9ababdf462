// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/play"
)

// refused is one document of examples/invalid, and why it is refused.
type refused struct {
	file, kind string
	message    string
	causes     []metav1.StatusCause
	// bySchema is true where its schema refuses it, and not our webhook.
	bySchema bool
}

// examples are all documents of examples/invalid. One that is not refused, or for another reason
// than it states, fails the test.
func examples(t *testing.T, s server) []refused {
	t.Helper()

	files, err := filepath.Glob("../../examples/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}

	var out []refused

	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		want := fixture.Refusal(raw)

		for _, u := range parse(t, raw) {
			err := s.create(t.Context(), u)
			if err == nil || want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it is refused: %v\nand not for: %s", filepath.Base(file), err, want)

				continue
			}

			out = append(out, refused{
				file: filepath.Base(file), kind: u.GetKind(), message: err.Error(), causes: causes(err),
				bySchema: s.bySchema(t.Context(), u) != nil,
			})
		}
	}

	return out
}

func TestEachExampleIsRefusedForTheReasonItStates(t *testing.T) {
	if n := len(examples(t, start(t))); n < 100 {
		t.Errorf("%d documents, want at least 100", n)
	}
}

// TestEachRefusalOfASchemaHasAnExample walks the CRDs for what people get wrong: rules, lists of
// what a field may be, patterns, texts and lists that are empty, and what is there twice. That
// something is too long or too much is not among them, and neither is a rule that needs an update.
func TestEachRefusalOfASchemaHasAnExample(t *testing.T) {
	s := start(t)
	all := examples(t, s)
	constraints := s.constraints()

	if len(constraints) < 40 {
		t.Errorf("%d constraints, want at least 40", len(constraints))
	}

	for _, what := range slices.Sorted(maps.Keys(constraints)) {
		breaks := constraints[what]

		if !slices.ContainsFunc(all, func(r refused) bool {
			return r.bySchema && slices.ContainsFunc(r.causes, func(c metav1.StatusCause) bool { return breaks(r.kind, c) })
		}) {
			t.Errorf("no document of examples/invalid is refused for: %s", what)
		}
	}
}

// nonsense is no field path, no CEL, no operator, no label and no version.
const nonsense = "a/b/[("

// TestEachPlaceThatIsCompiledHasAnExample writes nonsense into every text of objects that are
// good. Where our webhook finds it, there has to be an example that is refused for the same place.
func TestEachPlaceThatIsCompiledHasAnExample(t *testing.T) {
	s := start(t)

	raw, err := os.ReadFile("testdata/complete.yaml")
	if err != nil {
		t.Fatal(err)
	}

	shown := map[string]bool{}

	for _, r := range examples(t, s) {
		for _, c := range r.causes {
			if !r.bySchema {
				shown[compiled(r.kind, c)] = true
			}
		}
	}

	there, found := map[string]bool{}, map[string]bool{}

	for _, u := range parse(t, raw) {
		if err := s.create(t.Context(), u); err != nil {
			t.Fatalf("%s %q of complete.yaml is not good: %v", u.GetKind(), u.GetName(), err)
		}

		for path, set := range texts(u.Object, "") {
			there[place(u.GetKind(), path)] = true

			broken := u.DeepCopy()
			set(broken.Object, nonsense)

			if s.bySchema(t.Context(), broken) != nil {
				continue
			}

			for _, c := range causes(s.byWebhook(t.Context(), broken)) {
				if strings.HasPrefix(path, c.Field) {
					found[compiled(u.GetKind(), c)] = true
				}
			}
		}
	}

	for _, path := range s.texts() {
		if !there[path] {
			t.Errorf("complete.yaml has no %s", path)
		}
	}

	if len(found) < 15 {
		t.Errorf("%d places are compiled, want at least 15", len(found))
	}

	for _, at := range slices.Sorted(maps.Keys(found)) {
		if !shown[at] {
			t.Errorf("no document of examples/invalid is refused for %s", at)
		}
	}
}

// compiled is where in an object of a kind something does not compile, and as what.
func compiled(kind string, c metav1.StatusCause) string {
	for _, what := range []string{"cannot compile CEL", "not a field path"} {
		if strings.Contains(c.Message, what) {
			return place(kind, c.Field) + ": " + what
		}
	}

	return place(kind, c.Field)
}

// place is where in an object of a kind something is, whichever element of a list it is in. A
// selector is one place.
func place(kind, path string) string {
	path = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "[]")

	return kind + " " + regexp.MustCompile(`([sS]elector)\..*$`).ReplaceAllString(path, "$1")
}

// unseen are sentences about what is wrong that no example can show, and why.
var unseen = map[string]string{
	"paramRef says which objects of it hold the parameters":           "the rule of the schema comes first",
	"it says which objects of paramKind hold the parameters":          "the rule of the schema comes first",
	"must be between %s and %s":                                       "the rules of the schema come first",
	"the path is empty":                                               "the schema wants one character at least",
	"its paramRef names no namespace, and the object belongs to none": "of an evaluation",
	"nobody reads them here":                                          "of an evaluation",
	"cannot read its parameters":                                      "of an evaluation",
	"some that are found are in another namespace":                    "of an evaluation",
	"they have not been sent yet":                                     "of an evaluation",
}

// TestEachSentenceOfARefusalHasAnExample holds what the sources of the engine say of fields that
// are wrong to the examples.
func TestEachSentenceOfARefusalHasAnExample(t *testing.T) {
	all := examples(t, start(t))
	said := sentences(t)

	if len(said) < 15 {
		t.Errorf("%d sentences, want at least 15", len(said))
	}

	for text := range unseen {
		if !slices.Contains(said, text) {
			t.Errorf("the engine no longer says %q", text)
		}
	}

	for _, text := range said {
		if unseen[text] == "" && !slices.ContainsFunc(all, func(r refused) bool { return strings.Contains(r.message, text) }) {
			t.Errorf("no document of examples/invalid is refused with: %s", text)
		}
	}
}

// TestEveryRecipeOfTheCookbookIsGood has what can be known without an API server be known early.
func TestEveryRecipeOfTheCookbookIsGood(t *testing.T) {
	s := start(t)

	raw, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}

	good := 0

	for _, block := range play.Blocks(string(raw), "yaml") {
		objects := parse(t, []byte(block.Text))
		for _, u := range objects {
			if u.GetKind() == "CustomResourceDefinition" {
				s.define(t, u)
			}
		}

		for _, u := range objects {
			if s[u.GetKind()] == nil {
				continue // Whoever knows its kind checks it.
			}

			if err := s.create(t.Context(), u); err != nil {
				t.Errorf("%v", err)
			}

			good++
		}
	}

	if good < 40 {
		t.Errorf("%d objects, want at least 40", good)
	}
}
