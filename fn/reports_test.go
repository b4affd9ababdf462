// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/fn"
)

// toldXR is steady; EXTRA is what the step allows besides.
const toldXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: NAME
  uid: uid-NAME
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: "ALLOWANCES"
spec: {size: large}
status:
  conditions:
  - {type: Ready, status: "True", observedGeneration: 12}
  - {type: Kausality, status: "True", message: "generation 11: settled"}
  - {type: KausalityState, status: "True", message: '{"v":1,"progress":{"phase":"Settled","generation":11,"settled":{"generation":11}}}'}
`

const toldPolicy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: app-engine, generation: 4}
spec:
  match: {kind: XDatabase, fields: [spec.engine]}
  allow:
  - {kind: Object, mutations: [spec.forProvider.engine]}
  - {relation: External, mutations: [Update]}
`

// engineAllowed are allowances of an XR, as one line.
const engineAllowed = `[{kind: Object, mutation: spec.forProvider.engine, generation: 12, initiator: hans, policy: app-engine, id: '12.0', source: {type: Policy, name: app-engine, field: spec.engine}, ` +
	`trace: [{kind: XDatabase, name: a, generation: 12, field: spec.engine, attestations: {'metadata.annotations[ticket]': OPS-1}}]}, ` +
	`{relation: External, mutations: [Update], generation: 12, initiator: hans, policy: app-engine, id: '12.0', source: {type: Policy, name: app-engine, field: spec.engine}, ` +
	`trace: [{kind: XDatabase, name: a, generation: 12, field: spec.engine}]}]`

// listener is a Function of which the log is read.
type listener struct {
	*fn.Function

	lines []string
}

func listen() *listener {
	l := &listener{}
	log := funcr.New(func(_, args string) { l.lines = append(l.lines, args) }, funcr.Options{})
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	l.Function = fn.New(logging.NewLogrLogger(log), fn.WithClock(now))

	return l
}

// hear runs the function for an XR whose database is to have an engine, and
// returns what it logs.
func (l *listener) hear(t *testing.T, xr, allowances, engine, policy string) []string {
	t.Helper()

	req := call(t, strings.NewReplacer("NAME", xr, "ALLOWANCES", allowances).Replace(toldXR), observedObject, sized("small", engine), "")
	req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, policy)}}

	l.lines = nil

	if _, err := l.RunFunction(t.Context(), req); err != nil {
		t.Fatal(err)
	}

	return l.lines
}

// TestTheFunctionLogsWhatItHoldsOnce and not in each of the runs that follow, and
// when it is let through.
func TestTheFunctionLogsWhatItHoldsOnce(t *testing.T) {
	l := listen()

	steps := []struct {
		reason, xr, allowances, engine string
		// want are parts of the only line; none for no line.
		want []string
	}{
		{"What is as it was is nothing to tell.", "a", "[]", "postgres", nil},
		{"What is held is told, with all that it takes to act on it.", "a", "[]", "mysql", []string{
			`"Held a change"`, `"xrKind"="XDatabase"`, `"xr"="a"`, `"generation"=12`, `"resource"="Object db-obj"`,
			`"field"="spec.forProvider.engine"`, `"stays"="postgres"`, `"asked"="mysql"`, `"policies"=["app-engine@4"]`,
			`policy \"app-engine\" allows it only after an allowed change of spec.engine`,
		}},
		{"It is told once.", "a", "[]", "mysql", nil},
		{"And again where something else is asked for.", "a", "[]", "oracle", []string{`"Held a change"`, `"asked"="oracle"`}},
		{"Another XR has a line of its own.", "b", "[]", "oracle", []string{`"Held a change"`, `"xr"="b"`}},
		{"That changes nothing of the first.", "a", "[]", "oracle", nil},
		{"It is told when it is let through, and by whom.", "a", engineAllowed, "oracle", []string{
			`"Let a held change through"`, `"field"="spec.forProvider.engine"`, `"initiator"="hans"`, `"policies"=["app-engine@4"]`,
			`"metadata.annotations[ticket]"="OPS-1"`,
		}},
		{"Once, too.", "a", engineAllowed, "oracle", nil},
		{"And when it is not asked for any more.", "b", "[]", "postgres", []string{`"A change is no longer held"`, `"xr"="b"`}},
		{"What is held anew is told anew.", "b", "[]", "oracle", []string{`"Held a change"`, `"xr"="b"`}},
	}

	for i, tc := range steps {
		got := l.hear(t, tc.xr, tc.allowances, tc.engine, toldPolicy)
		if len(got) != min(1, len(tc.want)) {
			t.Fatalf("step %d: %s\nlogged %d lines: %s", i, tc.reason, len(got), strings.Join(got, "\n"))
		}

		for _, part := range tc.want {
			if !strings.Contains(got[0], part) {
				t.Errorf("step %d: %s\n%s is not in %s", i, tc.reason, part, got[0])
			}
		}
	}
}

// TestAnAuditReportsWhatPassesOnce as what would be held.
func TestAnAuditReportsWhatPassesOnce(t *testing.T) {
	l := listen()

	heard := make([][]string, 0, 2)

	for range 2 {
		req := call(t, strings.NewReplacer("NAME", "a", "ALLOWANCES", "[]").Replace(toldXR), observedObject, sized("small", "mysql"),
			"{apiVersion: kausality.io/v1alpha1, kind: Input, mode: Audit}")

		l.lines = nil

		if _, err := l.RunFunction(t.Context(), req); err != nil {
			t.Fatal(err)
		}

		heard = append(heard, l.lines)
	}

	if len(heard[0]) != 1 || !strings.Contains(heard[0][0], "Let a change pass that is not allowed") || len(heard[1]) != 0 {
		t.Errorf("logged %q", heard)
	}
}

// TestTheFunctionCountsExpressionsThatFail by the policy they are in.
func TestTheFunctionCountsExpressionsThatFail(t *testing.T) {
	l := listen()
	reg := prometheus.NewRegistry()

	if err := l.Register(reg); err != nil {
		t.Fatal(err)
	}

	failing := strings.Replace(strings.ReplaceAll(toldPolicy, "XDatabase", "Object"), "fields: [spec.engine]",
		`fields: [spec.forProvider.engine], cel: ["object.spec.none == 1"]`, 1) +
		`  subjects: [{kind: User, name: "system:serviceaccount:crossplane-system:crossplane", mayInitiate: true}]`

	l.hear(t, "a", "[]", "mysql", failing)
	l.hear(t, "a", "[]", "mysql", failing)

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() == "kausality_function_expression_errors_total" {
			m := f.GetMetric()[0]
			if m.GetCounter().GetValue() != 2 || m.GetLabel()[0].GetValue() != "AllowancePolicy" || m.GetLabel()[1].GetValue() != "app-engine" {
				t.Errorf("%v, want 2 of AllowancePolicy app-engine", m)
			}

			return
		}
	}

	t.Error("nothing is counted")
}

// TestTheFunctionCountsWhatPoliciesCost the same for the same, each time.
func TestTheFunctionCountsWhatPoliciesCost(t *testing.T) {
	l := listen()
	reg := prometheus.NewRegistry()

	if err := l.Register(reg); err != nil {
		t.Fatal(err)
	}

	costing := strings.Replace(strings.ReplaceAll(toldPolicy, "XDatabase", "Object"), "fields: [spec.engine]",
		`fields: [spec.forProvider.engine], cel: ["object.kind != ''"]`, 1) +
		`  subjects: [{kind: User, name: "system:serviceaccount:crossplane-system:crossplane", mayInitiate: true}]`

	l.hear(t, "a", "[]", "mysql", costing)
	l.hear(t, "a", "[]", "mysql", costing)

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() != "kausality_function_policy_cost" {
			continue
		}

		m := f.GetMetric()[0]
		if h := m.GetHistogram(); h.GetSampleCount() != 2 || h.GetSampleSum() != 4 || m.GetLabel()[0].GetValue() != "app-engine" {
			t.Errorf("%v, want 2 times 2 of app-engine", m)
		}

		return
	}

	t.Error("nothing is counted")
}
