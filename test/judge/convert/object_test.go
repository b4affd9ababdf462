// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAnAllowanceSaysWhatGaveIt(t *testing.T) {
	source := func(typ v1alpha1.SourceType, name, field, from string) v1alpha1.AllowanceSource {
		return v1alpha1.AllowanceSource{Type: typ, Name: name, Field: field, From: from}
	}

	for name, tc := range map[string]struct {
		text string
		want v1alpha1.AllowanceSource
		id   string
	}{
		"Policy":    {"{kind: A, mutation: spec, generation: 5, initiator: hans, policy: p, trace: [{kind: X, name: x, generation: 5, request: 2, field: spec.size}]}", source(v1alpha1.SourcePolicy, "p", "spec.size", ""), "5.2"},
		"Window":    {"{relation: External, mutations: [Update], generation: 5, initiator: UpgradeAllowance/w, policy: w, trace: [{kind: X, name: x, generation: 5, field: spec.size}]}", source(v1alpha1.SourceWindow, "w", "spec.size", ""), "5.0"},
		"Alone":     {"{relation: External, mutations: [Update], generation: 5, initiator: UpgradeAllowance/w, policy: w, trace: [{kind: X, name: x, generation: 5, field: External}]}", source(v1alpha1.SourceWindow, "w", "", ""), "5.0"},
		"Approval":  {"{kind: A, mutation: spec, generation: 5, initiator: hans, digest: d, approval: u, trace: [{kind: ChangeApproval, name: c, generation: 1, field: spec}]}", source(v1alpha1.SourceApproval, "c", "", ""), "5.0"},
		"Follows":   {"{relation: External, mutations: [Update], generation: 5, initiator: hans, trace: [{kind: ChangeApproval, name: c, generation: 1, field: spec}, {kind: A, name: a, generation: 5, field: spec.x}]}", source(v1alpha1.SourceApproval, "c", "spec.x", ""), "5.0"},
		"Creation":  {"{relation: External, mutations: [Create, Update], generation: 1, initiator: hans, trace: [{kind: A, name: a, generation: 1, field: create}]}", source(v1alpha1.SourceCreation, "", "create", ""), "1.0"},
		"Deletion":  {"{kind: A, mutation: delete, generation: 5, initiator: hans, policy: p, trace: [{kind: X, name: x, generation: 5, field: delete}]}", source(v1alpha1.SourceDeletion, "p", "", ""), "5.0"},
		"Inherited": {"{relation: External, mutations: [Delete], generation: 5, initiator: hans, policy: p, trace: [{kind: X, name: x, generation: 3, field: delete}, {kind: A, name: a, generation: 5, field: delete}]}", source(v1alpha1.SourceDeletion, "p", "", "3.0"), "5.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := parsed(t, Text("- "+tc.text+"\n"))
			if diff := cmp.Diff(tc.want, got.Source); diff != "" || got.ID != tc.id {
				t.Errorf("id %s, -want, +got:\n%s", got.ID, diff)
			}
		})
	}

	const block = `- kind: A
  mutation: spec.size
  generation: 5
  initiator: hans
  policy: p
  trace:
  - kind: X
    name: x
    generation: 5
    request: 1
    field: spec.a[b.c]
`

	text := Text(block)
	want := v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: "p", Field: "spec.a[b.c]"}

	if got := parsed(t, text); got.Source != want || got.ID != "5.1" || allowance.FormatList([]v1alpha1.Allowance{got}) != text {
		t.Errorf("%+v of\n%s", got, text)
	}

	if again := Text(text); again != text {
		t.Errorf("converted again:\n%s", again)
	}
}

func parsed(t *testing.T, text string) v1alpha1.Allowance {
	t.Helper()

	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: text})

	list, err := allowance.Parse(u)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v of\n%s", err, text)
	}

	return list[0]
}

// TestAnObjectMeansWhatItMeant in what its trace said of requests and uses.
func TestAnObjectMeansWhatItMeant(t *testing.T) {
	const (
		parent = `{apiVersion: v1, kind: ConfigMap, metadata: {name: p, annotations: {kausality.io/allowances:
			"[{kind: ConfigMap, mutation: data, generation: 1, initiator: hans, trace: [{kind: ConfigMap, name: p, generation: 1, request: 1, field: data.a}]}]"}}}`
		child = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kausality.io/last-upgrade: w, kausality.io/trace:
			"[{field: data.b, generation: 1, initiator: hans, trace: [{kind: ConfigMap, name: p, generation: 1, request: 1, field: data.a},
			{kind: ConfigMap, name: c, generation: 1, request: 3, field: data.b}]}]"}}}`
	)

	p, c := decoded(t, parent), decoded(t, child)
	if err := Object(c.Object, p, c.Object, map[string]types.UID{"w": "uid-w"}); err != nil {
		t.Fatal(err)
	}

	want := v1alpha1.ObjectRecord{
		V: v1alpha1.RecordVersion, Request: "1.3", Used: []v1alpha1.Use{{ID: "1.1", Field: "data.a"}}, Windows: []types.UID{"uid-w"},
	}

	got, err := allowance.ParseRecord(c)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want, +got:\n%s", err, diff)
	}
}

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

	return u
}
