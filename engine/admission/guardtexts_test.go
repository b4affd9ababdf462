// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// expressions are those of the guards, by guard and place.
func expressions() map[string]string {
	h := Options{Crossplane: inCrossplane + "crossplane", Manager: ourManager}

	guards := slices.Concat(h.Guards(nil, nil), DefinitionGuards(true),
		[]Guard{h.HeldGuard(nil), h.ApprovalGuard(), h.PendingGuard(), BindGuard(), ParameterGuard()})
	out := map[string]string{}

	for _, g := range guards {
		for _, c := range g.Policy.Spec.MatchConditions {
			out[g.Policy.GetName()+" "+c.Name] = c.Expression
		}

		for i, v := range g.Policy.Spec.Validations {
			out[fmt.Sprintf("%s %d", g.Policy.GetName(), i)] = v.Expression
		}
	}

	return out
}

// parses finds what takes the text of an annotation apart: all that a string can be asked for but equality.
var parses = regexp.MustCompile(`annotations\b[^&|]*?\.(contains|matches|startsWith|endsWith|split|substring|indexOf|find|findAll|replace|size|lowerAscii)\(`)

func TestNoGuardParsesAnAnnotation(t *testing.T) {
	all := expressions()
	if len(all) < 20 {
		t.Fatalf("%d expressions: %v", len(all), slices.Sorted(maps.Keys(all)))
	}

	for name, text := range all {
		if found := parses.FindString(text); found != "" {
			t.Errorf("%s takes an annotation apart: %s", name, found)
		}
	}

	for _, text := range []string{
		"oldObject.metadata.?annotations[?'a'].orValue('').contains('state: Closed')",
		"!oldObject.metadata.annotations['a'].matches('Delete|[*]')",
		"object.metadata.annotations['a'].startsWith('v')",
	} {
		if !parses.MatchString(text) {
			t.Errorf("it is not found: %s", text)
		}
	}
}

// request is one that an expression is asked about.
type request struct {
	user     string
	old, obj map[string]any
}

// objectWith makes a managed resource; nil policies are none, and an annotation that is "-" is none.
func objectWith(policies []any, record, trace string) map[string]any {
	annotations := map[string]any{}

	for key, text := range map[string]string{v1alpha1.AnnotationGate: record, v1alpha1.AnnotationTrace: trace} {
		if text != "-" {
			annotations[key] = text
		}
	}

	spec := map[string]any{}
	if policies != nil {
		spec["managementPolicies"] = policies
	}

	return map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec}
}

// TestAGuardThatTestsTextsDecidesAsOneThatParsedThem compares each expression of a guard with the one before it, for all
// combinations of what they read.
func TestAGuardThatTestsTextsDecidesAsOneThatParsedThem(t *testing.T) {
	const (
		was = "request.userInfo.username == %[1]q && oldObject.metadata.?annotations[?%[2]q].orValue('').contains('state: Closed') && " +
			"object.metadata.?annotations[?%[2]q].orValue('').contains('state: Open') && " +
			"object.metadata.?annotations[?%[3]q].orValue('') != oldObject.metadata.?annotations[?%[3]q].orValue('')"
		wasUngated = "oldObject.metadata.?annotations[?%q].orValue('').contains('state: Ungated')"
		crossplane = inCrossplane + "crossplane"
	)

	h := Options{Crossplane: crossplane, Manager: ourManager}

	closed, open := []any{"Observe", "LateInitialize"}, []any{"Observe", "Update"}
	sets := map[string][]any{"closed": closed, "observe": {"Observe"}, "open": open, "all": {"*"}, "unset": nil}
	records := map[string][]string{
		"none": {"-"}, "closed": {"v: 1\nstate: Closed\nsince: a\n"}, "open": {"v: 1\nstate: Open\nsince: b\n"}, "ungated": managed.UngatedRecords(),
	}
	// The set that goes with a state, by the manager, which alone writes both.
	fits := map[string][]string{"none": {"closed", "observe", "open", "all", "unset"}, "closed": {"closed", "observe"}, "open": {"open", "all"}, "ungated": {"all", "open", "unset", "closed"}}

	opened := compiled(t, h.openedExpression())
	formerly := compiled(t, fmt.Sprintf(was, crossplane, v1alpha1.AnnotationGate, v1alpha1.AnnotationTrace))
	ungated, formerlyUngated := compiled(t, ungatedExpression()), compiled(t, fmt.Sprintf(wasUngated, v1alpha1.AnnotationGate))
	compared, allowed := 0, 0

	each := func(visit func(state string, object map[string]any, trace string)) {
		for state, texts := range records {
			for _, record := range texts {
				for _, set := range fits[state] {
					for _, trace := range []string{"-", "a", "b"} {
						visit(state, objectWith(sets[set], record, trace), trace)
					}
				}
			}
		}
	}

	each(func(was string, old map[string]any, _ string) {
		each(func(is string, obj map[string]any, _ string) {
			for _, user := range []string{crossplane, "anna"} {
				r := request{user: user, old: old, obj: obj}

				want, got := r.holds(t, formerly), r.holds(t, opened)
				if want != got {
					t.Errorf("from %s to %s by %s: opens %t, was %t\n%v\n%v", was, is, user, got, want, old, obj)
				}

				compared++

				if got {
					allowed++
				}
			}

			r := request{user: "anna", old: old, obj: obj}
			if want, got := r.holds(t, formerlyUngated), r.holds(t, ungated); want != got {
				t.Errorf("from %s: ungated %t, was %t", was, got, want)
			}
		})
	})

	if compared < 1000 || allowed == 0 {
		t.Errorf("%d compared, %d allowed", compared, allowed)
	}
}

// TestWhereStateAndPoliciesContradictNoGateOpens is about what no history of the manager leads to, and about paused
// resources, whose set tells no state.
func TestWhereStateAndPoliciesContradictNoGateOpens(t *testing.T) {
	h := Options{Crossplane: inCrossplane + "crossplane", Manager: ourManager}

	const shut, isOpen = "v: 1\nstate: Closed\n", "v: 1\nstate: Open\n"

	closed, open := []any{"Observe"}, []any{"Observe", "Update"}

	for name, tc := range map[string]struct {
		reason   string
		old, obj map[string]any
		want     bool
	}{
		"Moved":  {"The webhook moves set and record.", objectWith(closed, shut, "a"), objectWith(open, isOpen, "b"), true},
		"Paused": {"It does so of what was paused while closed.", objectWith([]any{}, shut, "a"), objectWith(open, isOpen, "b"), true},
		// The only one that was refused before: the set of a paused resource does not tell the state. Record and trace are the
		// webhook's still.
		"PausedOpen": {"It does so of no other, but the guard cannot tell.", objectWith([]any{}, isOpen, "a"), objectWith(open, isOpen+"since: c\n", "b"), true},
		"SetAlone":   {"Without the record nobody has moved it.", objectWith(closed, shut, "a"), objectWith(open, shut, "b"), false},
		"Alone":      {"Without the set nothing opens.", objectWith(closed, shut, "a"), objectWith(closed, isOpen, "b"), false},
		"NoRecord":   {"A resource without a record is the manager's.", objectWith(closed, "-", "a"), objectWith(open, isOpen, "b"), false},
		"Removed":    {"A record is not taken away with it.", objectWith(closed, shut, "a"), objectWith(open, "-", "b"), false},
		"Untraced":   {"Nothing says why.", objectWith(closed, shut, "a"), objectWith(open, isOpen, "a"), false},
		"Wide":       {"It was open before.", objectWith(open, shut, "a"), objectWith([]any{"*"}, isOpen, "b"), false},
		"Ungating":   {"Crossplane takes no gate away.", objectWith(closed, shut, "a"), objectWith([]any{"*"}, managed.UngatedRecords()[0], "b"), false},
		"Regating":   {"Nor does it give one.", objectWith(closed, managed.UngatedRecords()[1], "a"), objectWith(open, isOpen, "b"), false},
		"Unguarded":  {"Nor to a record that only looks like that of no gate.", objectWith(closed, "state: Ungated", "a"), objectWith(open, "state: Ungated", "b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := request{user: h.Crossplane, old: tc.old, obj: tc.obj}.holds(t, compiled(t, h.openedExpression()))
			if got != tc.want {
				t.Errorf("%s\nopens: %t", tc.reason, got)
			}
		})
	}
}

func (r request) holds(t *testing.T, e *expression.Expression) bool {
	t.Helper()

	ok, _, err := e.Eval(expression.Input{Object: r.obj, OldObject: r.old, Request: func() map[string]any {
		return map[string]any{"operation": "UPDATE", "userInfo": map[string]any{"username": r.user}}
	}})
	if err != nil {
		t.Fatal(err)
	}

	return ok
}

func compiled(t *testing.T, text string) *expression.Expression {
	t.Helper()

	e, err := expression.Compile(text)
	if err != nil {
		t.Fatal(err)
	}

	return e
}

// TestTheGuardsReadWhatACompositionAsksForAsBefore compares them with what parsed a list in YAML, for each set and both
// modes.
func TestTheGuardsReadWhatACompositionAsksForAsBefore(t *testing.T) {
	const former = "annotation"

	orphansBefore := compiled(t, fmt.Sprintf("has(oldObject.metadata.annotations) && %[1]q in oldObject.metadata.annotations && "+
		"!oldObject.metadata.annotations[%[1]q].matches('Delete|[*]')", former))
	governedBefore := compiled(t, fmt.Sprintf("has(oldObject.metadata.annotations) && %q in oldObject.metadata.annotations", former))
	orphans, governed := compiled(t, orphanExpression()), compiled(t, markedExpression("oldObject"))

	actions := []string{"Observe", "LateInitialize", "Create", "Update", "Delete", "*"}
	seen := map[string]bool{}

	for bits := range 1 << len(actions) {
		var set []string

		for i, a := range actions {
			if bits&(1<<i) != 0 {
				set = append(set, a)
			}
		}

		slices.Reverse(set) // In whatever order it is asked for.

		for _, mode := range []v1alpha1.Mode{"", v1alpha1.ModeHold, v1alpha1.ModeAudit} {
			text := management.FormatDesired(v1alpha1.DesiredPolicies{Policies: append([]string{}, set...), Mode: mode})
			seen[text] = true

			was := annotated(former, "["+strings.Join(set, ", ")+"]")
			is := annotated(v1alpha1.AnnotationDesiredPolicies, text)

			if want, got := (request{old: was}).holds(t, orphansBefore), (request{old: is}).holds(t, orphans); got != want {
				t.Errorf("%s: meant to orphan: %t, was %t", text, got, want)
			}

			if want, got := (request{old: was}).holds(t, governedBefore), (request{old: is}).holds(t, governed); got != want {
				t.Errorf("%s: governed: %t, was %t", text, got, want)
			}
		}
	}

	if len(seen) != 66 {
		t.Errorf("%d texts", len(seen))
	}

	// What says nothing of policies has no gate, and what is not understood has, and orphans nothing.
	for text, want := range map[string]bool{management.NoPolicies: false, management.NoPoliciesAudit: false, "{": true, `{"v":2}`: true, "": true, "- Observe\n": true} {
		r := request{old: annotated(v1alpha1.AnnotationDesiredPolicies, text)}
		if got := r.holds(t, governed); got != want || r.holds(t, orphans) {
			t.Errorf("%q: governed %t", text, got)
		}
	}
}

func annotated(key, text string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: text}}, "spec": map[string]any{}}
}
