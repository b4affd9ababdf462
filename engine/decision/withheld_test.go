// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"cmp"
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	operator = "system:serviceaccount:operators:operator"
	injector = "system:serviceaccount:mesh:injector"

	held = `
apiVersion: example.org/v1
kind: Child
metadata:
  name: c
  uid: child-uid
  generation: 3
  ownerReferences: [{apiVersion: example.org/v1, kind: Root, name: r, uid: root-uid, controller: true}]
spec: {size: small, engine: postgres, rules: [{name: a, port: 1}, {name: b, port: 2}], ports: [{port: 1}, {port: 2}]}
status: {observedGeneration: 3}
`
)

// A write of a child, of some fields of its spec, while its root is at a generation.
type write struct {
	by   string
	root root
	spec map[string]any
	// may is a field that who writes may change, by a policy; empty for none.
	may string
	// again is true where the API server asks once more about the answer.
	again bool
}

// A root is at a generation, at which a field of it was changed; empty for another one, which gives nothing.
type root struct {
	generation int
	field      string
	// at is the generation of the change; 0 for that one.
	at int
	// quiet is true of one that does not say which generation it has seen.
	quiet bool
	// raw is what it is instead, if anything.
	raw string
	// given is true where the change gives all of spec.
	given bool
}

func gives(generation int, field string) root {
	return root{generation: generation, field: field, given: true}
}

func (r root) text() string {
	if r.raw != "" {
		return r.raw
	}

	out := fmt.Sprintf("apiVersion: example.org/v1\nkind: Root\nmetadata:\n  name: r\n  uid: root-uid\n  generation: %d\n  annotations:\n    kausality.io/initialized: '{\"v\":1}'\n", r.generation)
	at := cmp.Or(r.at, r.generation)
	hop := fmt.Sprintf("trace: [{kind: Root, name: r, generation: %d, field: %s}]", at, r.field)

	if r.given {
		out += fmt.Sprintf("    kausality.io/allowances: |\n      - {kind: Child, mutation: spec, generation: %d, id: '%d.0', initiator: hans, source: {type: Policy, field: %s}, %s}\n", r.generation, r.generation, r.field, hop)
	}

	if r.field != "" {
		out += fmt.Sprintf("    kausality.io/trace: |\n      - {field: %s, generation: %d, initiator: hans, %s}\n", r.field, at, hop)
	}

	out += "spec: {size: large}\n"

	if seen := r.generation; !r.quiet {
		if r.field != "" {
			seen--
		}

		out += fmt.Sprintf("status: {observedGeneration: %d, conditions: [{type: Ready, status: 'True', observedGeneration: %d}]}\n", seen, seen)
	}

	return out
}

// decide decides about the write, and returns the object that is stored.
func (w write) decide(t *testing.T, old *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()

	e := &v1alpha1.Enforcement{}
	e.Name = "children"
	e.Spec.ValidationActions = []v1alpha1.ValidationAction{v1alpha1.ActionHold}
	e.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{"example.org"}, Resources: []string{"children"}}}

	hold, errs := enforcement.Compile(e)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	obj := old.DeepCopy()
	maps.Copy(resource.Map(obj.Object, "spec"), runtime.DeepCopyJSON(w.spec))

	for range 2 {
		req := requestFor(t, policy.User{Name: w.by}, held, held, w.root.text())
		req.Old, req.New = old, obj
		req.Resource = schema.GroupResource{Group: "example.org", Resource: "children"}
		req.Basis.Enforcements = []*enforcement.Enforcement{hold}

		if w.may != "" {
			req.Basis.Policies = set(t, fmt.Sprintf(`
kind: AllowancePolicy
metadata: {name: child}
spec:
  match: {apiGroup: example.org, kind: Child, fields: [%s]}
  subjects: [{kind: User, name: %s, mayInitiate: true}]
  allow: []
`, w.may, w.by))
		}

		d := decision.Decide(req)
		if len(d.Problems) > 0 {
			t.Fatal(d.Problems)
		}

		if obj = d.Object; !w.again {
			break
		}
	}

	return obj
}

func port(n int64) map[string]any { return map[string]any{"port": n} }

func rules(portOfB int64) []any {
	return []any{map[string]any{"name": "a", "port": int64(1)}, map[string]any{"name": "b", "port": portOfB}}
}

// TestWhatIsHeldIsLetOutByNoOtherEdit has the last of some writes of a child follow from an edit that gives all of its spec.
func TestWhatIsHeldIsLetOutByNoOtherEdit(t *testing.T) {
	mysql := map[string]any{"engine": "mysql"}
	both := map[string]any{"engine": "mysql", "size": "large"}
	none := map[string]any{}

	for name, tc := range map[string]struct {
		reason   string
		has      map[string]string // Annotations of the child.
		writes   []write
		field    string
		want     any
		wantSize string
	}{
		"Held": {
			"It was held before.", nil,
			[]write{{by: operator, root: root{generation: 12}, spec: mysql}, {by: operator, root: gives(13, "spec.size"), spec: both}},
			"engine", "postgres", "large",
		},
		"AnotherWriter": {
			"What another controller writes between does not show that it is asked for no more.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: mysql},
				{by: injector, root: root{generation: 12}, spec: none},
				{by: injector, root: root{generation: 13}, spec: none},
				{by: operator, root: gives(14, "spec.size"), spec: both},
			},
			"engine", "postgres", "large",
		},
		"AskedAgain": {
			"Nor does our own answer, of which the API server asks anew.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: mysql, again: true},
				{by: operator, root: root{generation: 12}, spec: mysql, again: true},
				{by: operator, root: gives(13, "spec.size"), spec: both, again: true},
			},
			"engine", "postgres", "large",
		},
		"NoMore": {
			"Who asked for it does so no more, and then again for an edit.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: mysql},
				{by: operator, root: root{generation: 13}, spec: none},
				{by: operator, root: gives(14, "spec.size"), spec: both},
			},
			"engine", "mysql", "large",
		},
		"Wish": {
			"A composition function lets through what the webhook holds.",
			map[string]string{v1alpha1.AnnotationWish: "version: 1\napiVersion: example.org/v1\nkind: Child\nleaves: \"\"\n"},
			[]write{{by: crossplaneUser, root: root{generation: 12}, spec: mysql}, {by: crossplaneUser, root: gives(13, "spec.size"), spec: both}},
			"engine", "postgres", "large",
		},
		"Person": {
			"What somebody tried by hand does not hold what follows from an edit.", nil,
			[]write{{by: "mallory", root: root{generation: 12}, spec: mysql}, {by: operator, root: gives(13, "spec.engine"), spec: both}},
			"engine", "mysql", "large",
		},
		"Restored": {
			"The root is made anew from a backup, and comes to the generation of the record.", nil,
			[]write{
				{by: operator, root: root{generation: 3}, spec: mysql},
				{by: operator, root: root{generation: 1}, spec: mysql},
				{by: operator, root: gives(2, "spec.size"), spec: both},
				{by: operator, root: gives(3, "spec.size"), spec: both},
				{by: operator, root: gives(4, "spec.size"), spec: both},
			},
			"engine", "postgres", "large",
		},
		"Quiet": {
			"The root does not say what it has seen; its last change of size is long ago.", nil,
			[]write{
				{by: operator, root: root{generation: 12, quiet: true, field: "spec.size", at: 5}, spec: mysql}, {by: operator, root: gives(13, "spec.size"), spec: both},
			},
			"engine", "postgres", "large",
		},
		"Joined": {
			"Of what is held in a list without keys, one is since an edit of the same field.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: map[string]any{"rules": rules(99)}},
				{by: operator, root: root{generation: 13, field: "spec.size"}, spec: map[string]any{"rules": []any{map[string]any{"name": "a", "port": int64(11)}, rules(99)[1]}}},
				{by: operator, root: gives(14, "spec.size"), spec: map[string]any{"size": "large", "rules": append(rules(99), map[string]any{"port": int64(5)})}},
			},
			"rules", rules(2), "large",
		},
		"SamePlace": {
			"Somebody who may stores another change in a list without keys.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: map[string]any{"ports": []any{port(1), port(99)}}},
				{by: "hans", may: "spec.ports", root: root{generation: 12}, spec: map[string]any{"ports": []any{port(11), port(2)}}},
				{by: operator, root: gives(13, "spec.size"), spec: map[string]any{"size": "large", "ports": []any{port(11), port(99)}}},
			},
			"ports",
			[]any{port(11), port(2)},
			"large",
		},
		"Stored": {
			"Somebody who may stores what was held, and then an edit of the root changes it.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: mysql},
				{by: "hans", may: "spec.engine", root: root{generation: 12}, spec: mysql},
				{by: operator, root: gives(13, "spec.size"), spec: map[string]any{"size": "large", "engine": "oracle"}},
			},
			"engine", "oracle", "large",
		},
		"Beside": {
			"The removal of an element is held, and another one is changed.", nil,
			[]write{
				{by: operator, root: root{generation: 12}, spec: map[string]any{"rules": rules(2)[1:]}},
				{by: operator, root: gives(13, "spec.rules"), spec: map[string]any{"rules": rules(22)[1:], "size": "large"}},
			},
			"rules", rules(22), "large",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := object(t, held)
			u.SetAnnotations(tc.has)

			for _, w := range tc.writes {
				u = w.decide(t, u)
			}

			spec := resource.Map(u.Object, "spec")
			if got, want := fmt.Sprint(spec[tc.field]), fmt.Sprint(tc.want); got != want || spec["size"] != tc.wantSize {
				t.Errorf("%s\nspec: %v, want %s: %v, size: %s\nrecord: %s", tc.reason, spec, tc.field, want, tc.wantSize, resource.Annotation(u, v1alpha1.AnnotationRecord))
			}
		})
	}
}

// TestWhatIsHeldReadsTheSameEachTime has elements go from a list, while others of the same names move to their places.
func TestWhatIsHeldReadsTheSameEachTime(t *testing.T) {
	rule := func(name string) map[string]any {
		list := []any{map[string]any{"name": name + "1"}, map[string]any{"name": name + "2"}, map[string]any{"name": name + "3"}}

		return map[string]any{"name": name, "in": list, "out": runtime.DeepCopyJSONValue(list), "via": runtime.DeepCopyJSONValue(list)}
	}

	u := object(t, held)
	resource.Map(u.Object, "spec")["rules"] = []any{rule("a"), rule("b")}

	var first string

	for range 100 {
		got := write{by: operator, root: root{generation: 12}, spec: map[string]any{"rules": []any{map[string]any{"name": "b"}}}}.decide(t, u)

		text := resource.Annotation(got, v1alpha1.AnnotationHeld)
		if first == "" {
			first = text
		}

		if text != first || text == "" {
			t.Fatalf("held: %s\nand before: %s", text, first)
		}
	}
}
