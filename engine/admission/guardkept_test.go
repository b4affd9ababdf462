// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

const (
	inCrossplane = "system:serviceaccount:crossplane-system:"
	ourManager   = "system:serviceaccount:kausality-system:kausality-manager"
)

func TestTheGuardsKeepWhatDecidesAboutTheOutside(t *testing.T) {
	c := Options{Crossplane: inCrossplane + "crossplane", Manager: ourManager}
	writer, deleter := c.writerGuard(nil, nil), deleteGuard(nil)

	const (
		gated = `metadata: {annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: "v: 1\nstate: Closed\n", kausality.io/trace: a}}`
		free  = `metadata: {annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: "v: 1\nstate: Ungated\n", kausality.io/trace: a}}`
		keep  = `{spec: {managementPolicies: [Observe], deletionPolicy: Delete, forProvider: {}}}`
		named = `metadata: {annotations: {crossplane.io/external-name: db-b}}`
		loose = `{spec: {managementPolicies: [Observe], deletionPolicy: Orphan, forProvider: {}}}`
		wide  = `{spec: {managementPolicies: ['*'], deletionPolicy: Delete, forProvider: {}}}`

		unknown = `metadata: {annotations: {kausality.io/former: "{}"}}`
		ours    = `metadata: {annotations: {kausality.io/trace: a, kausality.io/allowances: "[]", kausality.io/held: "[]", example.org/former: a}}`
	)

	for name, tc := range map[string]struct {
		reason   string
		user     string
		old, obj []string
		want     bool
	}{
		"Hand":       {"A hand must not orphan.", "anna", []string{gated, keep}, []string{gated, loose}, false},
		"HandBack":   {"Nor delete what is to stay.", "anna", []string{gated, loose}, []string{gated, keep}, false},
		"Allowed":    {"A policy may allow it.", "anna", []string{gated, keep}, []string{gated, loose, `metadata: {annotations: {kausality.io/trace: b}}`}, true},
		"Default":    {"Unset means Delete.", "anna", []string{gated, keep}, []string{gated, `{spec: {managementPolicies: [Observe], forProvider: {}}}`}, true},
		"Unset":      {"Unset means Delete.", "anna", []string{gated, loose}, []string{gated, `{spec: {managementPolicies: [Observe], forProvider: {}}}`}, false},
		"Crossplane": {"Crossplane's change of it has to be looked at.", inCrossplane + "crossplane", []string{gated, keep}, []string{gated, loose}, false},
		"Composition": {"What a Composition wants is judged by us.", inCrossplane + "crossplane", []string{gated, keep}, []string{
			gated, loose,
			`metadata: {annotations: {kausality.io/trace: b}}`,
		}, true},
		"Renamed":             {"A hand must not have the gate open for another object.", "anna", []string{gated, keep}, []string{gated, keep, named}, false},
		"RenamedByProvider":   {"A provider names what it makes.", inCrossplane + "provider-aws", []string{gated, keep}, []string{gated, keep, named}, true},
		"RenamedByCrossplane": {"Has to be looked at.", inCrossplane + "crossplane", []string{gated, keep}, []string{gated, keep, named}, false},
		"RenamedAllowed": {
			"A policy may allow it.", "anna",
			[]string{gated, keep},
			[]string{gated, keep, named, `metadata: {annotations: {kausality.io/trace: b}}`},
			true,
		},
		"NameDropped":      {"No name is another name.", "anna", []string{gated, keep, named}, []string{gated, keep}, false},
		"NamePutBack":      {"We put it back.", ourManager, []string{gated, keep, named}, []string{gated, keep}, true},
		"Provider":         {"A provider may write what is its own.", inCrossplane + "provider-aws", []string{gated, keep}, []string{gated, loose}, true},
		"Manager":          {"We put it back.", ourManager, []string{gated, keep}, []string{gated, loose}, true},
		"Ungated":          {"There is no gate.", "anna", []string{free, keep}, []string{free, loose}, true},
		"Creation":         {"What is made may say so.", "anna", nil, []string{gated, loose}, true},
		"Ungoverned":       {"It is not ours.", "anna", []string{keep, `metadata: {name: x}`}, []string{loose, `metadata: {name: x}`}, true},
		"Unknown":          {"Nobody knows what an annotation of another version says of a gate.", "anna", []string{unknown, keep}, []string{unknown, wide}, false},
		"UnknownToCome":    {"Nor whose it is.", "anna", []string{keep, `metadata: {name: x}`}, []string{unknown, wide}, false},
		"UnknownDropped":   {"A person may drop it, as long as the gate stays.", "anna", []string{unknown, keep}, []string{keep, `metadata: {name: x}`}, true},
		"UnknownDeletion":  {"Nothing says that it may go.", "anna", []string{unknown, keep}, nil, false},
		"UnknownByManager": {"We close it.", ourManager, []string{unknown, wide}, []string{unknown, keep}, true},
		"WithoutGate":      {"What else is ours says nothing of a gate.", "anna", []string{ours, keep}, []string{ours, wide}, true},
		"WithoutGateGoes":  {"Nor of its deletion.", "anna", []string{ours, keep}, nil, true},
		"Deletion":         {"Nothing says that it may go.", "anna", []string{gated, keep}, nil, false},
		"Orphaned":         {"It was meant to be orphaned.", "anna", []string{gated, loose}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			guard, operation := writer, "UPDATE"

			switch {
			case tc.old == nil:
				operation = "CREATE"
			case tc.obj == nil:
				guard, operation = deleter, "DELETE"
			}

			if got := passes(t, guard, operation, tc.user, merged(t, tc.old), merged(t, tc.obj)); got != tc.want {
				t.Errorf("%s\nPasses: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// passes reports whether a guard lets a request pass, as the API server decides it.
func passes(
	t *testing.T, guard *admissionregistrationv1.ValidatingAdmissionPolicy, operation, user string, old, obj map[string]any,
) bool {
	t.Helper()

	eval := func(text string) bool {
		e, err := expression.Compile(text)
		if err != nil {
			t.Fatal(err)
		}

		ok, _, err := e.Eval(expression.Input{Object: obj, OldObject: old, Request: func() map[string]any {
			return map[string]any{"operation": operation, "userInfo": map[string]any{"username": user}}
		}})
		if err != nil {
			t.Fatal(err)
		}

		return ok
	}

	for _, c := range guard.Spec.MatchConditions {
		if !eval(c.Expression) {
			return true
		}
	}

	for _, v := range guard.Spec.Validations {
		if !eval(v.Expression) {
			return false
		}
	}

	return true
}

// merged makes an object of parts; nil of none.
func merged(t *testing.T, parts []string) map[string]any {
	t.Helper()

	var out map[string]any

	for _, part := range parts {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(part), &m); err != nil {
			t.Fatal(err)
		}

		out = overlay(out, m)
	}

	return out
}

func overlay(base, more map[string]any) map[string]any {
	if base == nil {
		base = map[string]any{}
	}

	for key, v := range more {
		if m, ok := v.(map[string]any); ok {
			below, _ := base[key].(map[string]any)
			v = overlay(below, m)
		}

		base[key] = v
	}

	return base
}
