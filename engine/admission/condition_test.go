// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestAConditionOfTheAPIServerIsAboutEitherObject(t *testing.T) {
	in := &v1alpha1.Enforcement{Spec: v1alpha1.EnforcementSpec{
		FailurePolicy:   v1alpha1.FailurePolicyIgnore,
		MatchConditions: []v1alpha1.MatchCondition{{Name: "prod", Expression: "object.spec.env == 'prod' || oldObject == null && object.spec.env == 'new'"}},
	}}

	compiled, errs := enforcement.Compile(in)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}

	given := Enforced{Enforcement: compiled}.conditions()
	if len(given) != 1 {
		t.Fatalf("%d conditions, want 1", len(given))
	}

	condition, err := expression.Compile(given[0].Expression)
	if err != nil {
		t.Fatal(err)
	}

	env := func(name string) map[string]any {
		if name == "" {
			return nil
		}

		return map[string]any{"spec": map[string]any{"env": name}}
	}

	for name, tc := range map[string]struct {
		operation, was, is string
		want               bool
	}{
		"Entering": {"UPDATE", "dev", "prod", true},
		"Leaving":  {"UPDATE", "prod", "dev", true},
		"Outside":  {"UPDATE", "dev", "test", false},
		"Made":     {"CREATE", "", "new", true},
		"MadeSo":   {"CREATE", "", "dev", false},
		"Deleted":  {"DELETE", "dev", "", true},
	} {
		got, _, err := condition.Eval(expression.Input{
			OldObject: env(tc.was), Object: env(tc.is),
			Request: func() map[string]any { return map[string]any{"operation": tc.operation} },
		})
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
}

func TestNobodyIsAskedAboutWhatChangesNothing(t *testing.T) {
	const was = `
apiVersion: v1
kind: Widget
metadata: {name: w, uid: u, generation: 1, resourceVersion: "1", labels: {a: b}, annotations: {kausality.io/trace: x, c: d}, managedFields: [{manager: m}]}
spec: {size: 1, list: [1, {a: b}]}
data: {x: eQ==}
status: {ready: true}
`

	condition, err := expression.Compile(changes().Expression)
	if err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		operation string
		from, to  string
		want      bool
	}{
		"Nothing":     {},
		"Bookkeeping": {from: `resourceVersion: "1"`, to: `resourceVersion: "2"`},
		"Owners":      {from: "managedFields: [{manager: m}]", to: "managedFields: [{manager: n}, {manager: m}]"},
		"NoVersion":   {from: `resourceVersion: "1", `},
		"Spec":        {from: "size: 1", to: "size: 2", want: true},
		"Deep":        {from: "{a: b}]", to: "{a: c}]", want: true},
		"Order":       {from: "[1, {a: b}]", to: "[{a: b}, 1]", want: true},
		"Added":       {from: "size: 1", to: "size: 1, more: 1", want: true},
		"Removed":     {from: "data: {x: eQ==}\n", want: true},
		"Beside":      {from: "data:", to: "more: {}\ndata:", want: true},
		"Status":      {from: "ready: true", to: "ready: false", want: true},
		"Label":       {from: "labels: {a: b}", to: "labels: {a: c}", want: true},
		"NoLabels":    {from: "labels: {a: b}, ", want: true},
		"Annotation":  {from: "c: d", to: "c: e", want: true},
		"Finalizer":   {from: "uid: u", to: "uid: u, finalizers: [f]", want: true},
		"Created":     {operation: "CREATE", want: true},
		"Deleted":     {operation: "DELETE", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			operation, object, old := cmp.Or(tc.operation, "UPDATE"), widget(t, was, tc.from, tc.to), widget(t, was, "", "")

			switch operation {
			case "CREATE":
				old = nil
			case "DELETE":
				object = nil
			}

			if got := holds(t, condition, operation, object, old); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}

	// They say what may be over, and what changes nothing may show that it is.
	for _, key := range []string{
		v1alpha1.AnnotationHeld, v1alpha1.AnnotationHeld, v1alpha1.AnnotationRelease, v1alpha1.AnnotationApproved,
	} {
		if same := widget(t, was, "c: d", key+": x"); !holds(t, condition, "UPDATE", same, same) {
			t.Errorf("nobody is asked though there is %s", key)
		}
	}
}

// widget reads an object, with a part of it replaced.
func widget(t *testing.T, text, from, to string) map[string]any {
	t.Helper()

	var out map[string]any
	if err := yaml.Unmarshal([]byte(strings.Replace(text, from, to, 1)), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

func holds(t *testing.T, condition *expression.Expression, operation string, object, old map[string]any) bool {
	t.Helper()

	got, _, err := condition.Eval(expression.Input{
		OldObject: old, Object: object, Request: func() map[string]any { return map[string]any{"operation": operation} },
	})
	if err != nil {
		t.Fatal(err)
	}

	return got
}

func TestTheWebhookOfStatusesIsAskedWhereCrossplaneSaysOnceMoreWhatWas(t *testing.T) {
	const stored = `{status: {conditions: [{type: Kausality, message: "2"}, {type: Ready, status: "True"}, {type: Responsive, status: "True"}]}}`

	h := Options{Crossplane: "crossplane"}
	kinds := []GovernedKind{
		{Served: kind.Served{GVK: schema.GroupVersionKind{Group: "g", Kind: "XR"}, Resource: "xrs", Composite: true}},
		{Served: kind.Served{GVK: schema.GroupVersionKind{Group: "g", Kind: "Claim"}, Resource: "claims", Crossplane: true}},
	}

	if got := h.reporting(kinds[1:]); got != nil {
		t.Fatalf("webhooks %v, though there is no XR", got)
	}

	w := h.reporting(kinds)[0]
	if diff := gocmp.Diff([]string{"xrs/status"}, w.Rules[0].Resources); len(w.Rules) != 1 || diff != "" {
		t.Fatalf("resources, -want, +got:\n%s", diff)
	}

	for name, tc := range map[string]struct {
		user, manager string
		from, to      string
		fromOld, old  string
		want          bool
	}{
		"Ours":       {from: `"2"`, to: `"1"`, want: true},
		"Ready":      {from: `Ready, status: "True"`, to: `Ready, status: "False"`, want: true},
		"Same":       {},
		"Pending":    {from: `Responsive, status: "True"`, to: `Responsive, status: "False"`},
		"Since":      {from: `Responsive, status: "True"`, to: `Responsive, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"`, want: true},
		"Later":      {from: `Responsive, status: "True"`, to: `Responsive, status: "True", observedGeneration: 2`},
		"Reason":     {from: `Responsive, status: "True"`, to: `Responsive, status: "True", reason: Open`},
		"AtTheEnd":   {manager: "crossplane", from: `"2"`, to: `"1"`},
		"Nobody":     {manager: "none", from: `"2"`, to: `"1"`},
		"Another":    {user: "anna", from: `"2"`, to: `"1"`},
		"NoFunction": {fromOld: `{type: Kausality, message: "2"}, `, from: `Ready, status: "True"`, to: `Ready, status: "False"`},
		"NoStatus":   {from: stored, to: "{}"},
		"First":      {fromOld: stored, old: "{}", from: `"2"`, to: `"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			options := map[string]any{"fieldManager": cmp.Or(tc.manager, resource.CompositeManager)}
			if tc.manager == "none" {
				options = map[string]any{}
			}

			got := true

			for _, m := range w.MatchConditions {
				condition, err := expression.Compile(m.Expression)
				if err != nil {
					t.Fatal(err)
				}

				met, _, err := condition.Eval(expression.Input{
					OldObject: widget(t, stored, tc.fromOld, tc.old), Object: widget(t, stored, tc.from, tc.to),
					Request: func() map[string]any {
						return map[string]any{"operation": "UPDATE", "options": options, "userInfo": map[string]any{"username": cmp.Or(tc.user, "crossplane")}}
					},
				})
				if err != nil {
					t.Fatal(err)
				}

				got = got && met
			}

			if got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
