// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// play says what is played of a Composition: testdata/play/NAME.yaml.
type play struct {
	// Files that suggestions are made from, the Composition of the root first.
	Files []string `json:"files"`
	// Root is the Claim or XR that people edit.
	Root map[string]any `json:"root"`
	// Changes of it, each by itself.
	Changes []edit `json:"changes"`
	// Problems that are told.
	Problems []string `json:"problems"`
}

// edit is a change of the root, and all that follows from it.
type edit struct {
	Field string `json:"field"`
	Value any    `json:"value"`
	// Follows are the fields that change, each as RESOURCE FIELD, or RESOURCE create.
	Follows []string `json:"follows"`
	// Opens are the gates that open, each as RESOURCE ACTION.
	Opens []string `json:"opens"`
}

// plays reads all that is played.
func plays(t *testing.T) map[string]play {
	t.Helper()

	files, err := filepath.Glob("testdata/play/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}

	out := map[string]play{}

	for _, f := range files {
		var p play
		if err := sigsyaml.UnmarshalStrict(read(t, f), &p); err != nil {
			t.Fatalf("%s: %v", f, err)
		}

		p.Root, _ = fixture.Decoded(p.Root).(map[string]any)
		out[strings.TrimSuffix(filepath.Base(f), ".yaml")] = p
	}

	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()

	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// material reads what suggestions are made from.
func (p play) material(t *testing.T) suggestion.Material {
	t.Helper()

	var out suggestion.Material

	for _, f := range p.Files {
		for _, u := range objects(t, read(t, f)) {
			switch u.GetKind() {
			case "Composition":
				out.Compositions = append(out.Compositions, u)
			case "CompositeResourceDefinition":
				out.Definitions = append(out.Definitions, u)
			case "CustomResourceDefinition":
				out.Kinds = append(out.Kinds, u)
			}
		}
	}

	out.Composition = out.Compositions[0]

	return out
}

func objects(t *testing.T, raw []byte) []*unstructured.Unstructured {
	t.Helper()

	var out []*unstructured.Unstructured

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		u := &unstructured.Unstructured{}

		err := dec.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}

		if err != nil {
			t.Fatal(err)
		}

		if u.Object, _ = fixture.Decoded(u.Object).(map[string]any); u.Object != nil {
			out = append(out, u)
		}
	}
}

// options are those that suggestions are played with.
func options() suggestion.Options {
	return suggestion.Options{
		Subjects:   []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
		Crossplane: v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: "crossplane-system", Name: "crossplane"},
		External:   true, Create: true, Silent: []string{"function-kausality"},
	}
}

// suggest suggests policies, and compiles them as they are printed.
func suggest(t *testing.T, m suggestion.Material, o suggestion.Options) (suggestion.Suggestion, []*policy.Policy) {
	t.Helper()

	s, err := suggestion.Suggest(m, o)
	if err != nil {
		t.Fatal(err)
	}

	printed := objects(t, []byte(s.Manifest()))
	if len(printed) != len(s.Policies) {
		t.Fatalf("%d policies are printed, want %d", len(printed), len(s.Policies))
	}

	out := make([]*policy.Policy, 0, len(printed))

	for i, u := range printed {
		var p v1alpha1.AllowancePolicy

		raw, err := sigsyaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}

		if err := sigsyaml.UnmarshalStrict(raw, &p); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(s.Policies[i].Policy, p); diff != "" {
			t.Errorf("%s is printed as another one, -want, +got:\n%s", p.Name, diff)
		}

		compiled, errs := policy.Compile(&p)
		if len(errs) > 0 {
			t.Fatal(errs)
		}

		out = append(out, compiled)
	}

	return s, out
}

// setPath sets a field of an object, and removes it where the value is nil.
func setPath(t *testing.T, object map[string]any, field string, value any) {
	t.Helper()

	path, err := fieldpath.Parse(field)
	if err != nil {
		t.Fatal(err)
	}

	value = fixture.Decoded(value)

	var at any = object

	for i, s := range path {
		last := i == len(path)-1

		switch in := at.(type) {
		case map[string]any:
			switch {
			case last && value == nil:
				delete(in, s.Field)
			case last:
				in[s.Field] = value
			case in[s.Field] == nil:
				in[s.Field] = map[string]any{}
			}

			at = in[s.Field]
		case []any:
			if last {
				in[s.Index] = value
			}

			at = in[s.Index]
		}
	}
}

// changed are the changes of all that is composed, as RESOURCE FIELD.
func changed(before, after map[string]*unstructured.Unstructured) []string {
	var out []string

	for _, name := range slices.Sorted(maps.Keys(after)) {
		old := before[name]
		if old == nil {
			out = append(out, name+" create")

			continue
		}

		for _, c := range change.Between(old.Object, after[name].Object) {
			if c.Metadata() && (below(c, "ownerReferences") || below(c, "finalizers") || below(c, "annotations")) || c.Path[1].Field == "crossplane" {
				continue // Of Kausality and Crossplane themselves.
			}

			out = append(out, name+" "+c.Field)
		}
	}

	return out
}

func below(c change.Change, field string) bool { return c.Path[1].Field == field }

// opened are the gates that opened since the world was made, as RESOURCE ACTION.
func (w *world) opened() []string {
	var out []string

	for name, u := range w.objects() {
		for _, action := range w.let[key(u)] {
			if entry := name + " " + action; !slices.Contains(out, entry) {
				out = append(out, entry)
			}
		}
	}

	slices.Sort(out)

	return out
}

func diff(t *testing.T, what string, want, got []string) {
	t.Helper()

	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	if d := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); d != "" {
		t.Errorf("%s: -want, +got:\n%s", what, d)
	}
}

// world makes the world of a play, settled.
func (p play) world(t *testing.T, m suggestion.Material, policies []*policy.Policy) *world {
	t.Helper()

	return newWorld(t, m, policy.NewSet(policies...), &unstructured.Unstructured{Object: p.Root})
}

func TestWhatIsSuggestedLetsThroughWhatTheSubjectsChangeAndHoldsTheRest(t *testing.T) {
	for name, p := range plays(t) {
		t.Run(name, func(t *testing.T) {
			m := p.material(t)
			s, policies := suggest(t, m, options())

			diff(t, "problems", p.Problems, texts(s.Problems))

			if len(p.Changes) == 0 {
				t.Error("nothing is played")
			}

			for _, c := range p.Changes {
				t.Run(c.Field, func(t *testing.T) {
					t.Run("Asked", func(t *testing.T) { c.asked(t, p.world(t, m, policies)) })
					t.Run("NotAsked", func(t *testing.T) { c.notAsked(t, p.world(t, m, policies)) })
					t.Run("WithAnotherComposition", func(t *testing.T) { c.beside(t, p.world(t, m, policies)) })
				})
			}
		})
	}
}

// asked plays the change by who may: all of it follows, and nothing is held.
func (e edit) asked(t *testing.T, w *world) {
	t.Helper()

	before := w.objects()

	if !w.edit(hans(), e.Field, e.Value) {
		t.Error("hans may not")
	}

	diff(t, "what follows", e.Follows, changed(before, w.objects()))
	diff(t, "gates", e.Opens, w.opened())
	diff(t, "held", nil, w.held())
}

// notAsked plays it by somebody else: nothing follows.
func (e edit) notAsked(t *testing.T, w *world) {
	t.Helper()

	before := w.objects()

	if w.edit(anna(), e.Field, e.Value) {
		t.Error("anna may")
	}

	// Labels and annotations of what is composed are no business of Kausality's.
	follows := slices.DeleteFunc(changed(before, w.objects()), func(f string) bool { return strings.Contains(f, " metadata.labels") })

	diff(t, "what follows", nil, follows)
	diff(t, "gates", nil, w.opened())
}

// beside plays it by who may, while a new version of the Composition wants something else of
// each resource: that is held, and the change passes.
func (e edit) beside(t *testing.T, w *world) {
	t.Helper()

	before := w.objects()
	want := w.upgrade()

	w.settle()
	diff(t, "held", want, w.held())
	diff(t, "what follows from it", nil, changed(before, w.objects()))

	if !w.edit(hans(), e.Field, e.Value) {
		t.Error("hans may not")
	}

	var follows []string

	for _, f := range changed(before, w.objects()) {
		if !strings.HasSuffix(f, " create") || slices.Contains(e.Follows, f) {
			follows = append(follows, f)
		}
	}

	diff(t, "what follows", e.Follows, follows)
	diff(t, "held beside it", want, w.held())
}

// upgrade adds a constant to the base of each managed resource, and each ConfigMap, and
// returns what will be held of those that are there.
func (w *world) upgrade() []string {
	var held []string

	var walk func(n *node)

	walk = func(n *node) {
		n.composition = n.composition.DeepCopy()

		for _, s := range resource.List(n.composition.Object, "spec", "pipeline") {
			step, _ := s.(map[string]any)

			for _, r := range resource.List(step, "input", "resources") {
				template, _ := r.(map[string]any)
				base := resource.Map(template, "base")
				field := "spec.forProvider.constant"

				if base["kind"] == "ConfigMap" {
					field = "data.constant"
				} else if !resource.IsManaged(n.live(template)) {
					continue
				}

				setPath(w.t, base, field, "new")

				if u := n.composed[resource.String(template, "name")]; u != nil {
					held = append(held, u.GetKind()+" "+field)
				}
			}
		}

		for _, name := range slices.Sorted(maps.Keys(n.nested)) {
			walk(n.nested[name])
		}
	}
	walk(w.xr)

	return held
}

// live is the resource that a template makes, or its base while it is not made.
func (n *node) live(template map[string]any) *unstructured.Unstructured {
	if u := n.composed[resource.String(template, "name")]; u != nil {
		return u
	}

	return &unstructured.Unstructured{Object: resource.Map(template, "base")}
}

func TestEachPolicyThatIsSuggestedIsNeeded(t *testing.T) {
	for name, p := range plays(t) {
		t.Run(name, func(t *testing.T) {
			m := p.material(t)
			_, policies := suggest(t, m, options())

			for i, left := range policies {
				if slices.Equal(left.Spec().Match.Fields, []string{v1alpha1.MutationCreate}) {
					continue // Without it anybody may make roots.
				}

				rest := slices.Delete(slices.Clone(policies), i, i+1)

				if !slices.ContainsFunc(p.Changes, func(e edit) bool {
					w := p.world(t, m, rest)
					before := w.objects()
					may := w.edit(hans(), e.Field, e.Value)

					return !may || len(w.held()) > 0 || !slices.Equal(slices.Sorted(slices.Values(e.Follows)), slices.Sorted(slices.Values(changed(before, w.objects()))))
				}) {
					t.Errorf("all that is played passes without policy %s", left.Name())
				}
			}
		})
	}
}
