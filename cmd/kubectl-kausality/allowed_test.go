// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// answers has one object, and lists.
type answers struct {
	object string
	lists  map[doctor.Source]doctor.List
}

func (a answers) Get(context.Context, string, string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}

	return u, yaml.Unmarshal([]byte(a.object), &u.Object)
}

func (a answers) list(_ context.Context, src doctor.Source, _ string) doctor.List {
	return a.lists[src]
}

func TestAllowedSaysWhetherAndWhy(t *testing.T) {
	const (
		head    = "apiVersion: example.org/v1\nkind: Workspace\nmetadata:\n  name: net\n  namespace: a\n  generation: 5\n"
		granted = head + "  annotations:\n    kausality.io/allowances: \"[{relation: External, mutations: [apply], generation: 5, initiator: hans, policy: p, id: '5.0', source: {type: Policy, name: p}}]\"\n"
	)

	policies := doctor.List{Items: []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "kausality.io/v1alpha1", "kind": "AllowancePolicy", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{
			"match": map[string]any{"kind": "Workspace", "fields": []any{"spec.size"}},
			"allow": []any{map[string]any{"relation": "External", "mutations": []any{"apply"}}},
		},
	}}}}

	cases := map[string]struct {
		reason string
		from   answers
		format string
		code   int
		want   string
	}{
		"Allowed": {
			reason: "Who asked is said, and the exit code is 0.", from: answers{object: granted, lists: map[doctor.Source]doctor.List{doctor.AllowancePolicies: policies}},
			want: "Workspace a/net: apply is allowed\n- requested by hans (generation 5, policy p)\n",
		},
		"NotAllowed": {
			reason: "What is missing is said, and the exit code is 3.", from: answers{object: head, lists: map[doctor.Source]doctor.List{doctor.AllowancePolicies: policies}},
			code: exitFinding,
			want: "Workspace a/net: apply is not allowed\n- AllowancePolicy \"p\" allows it with a change of spec.size of Workspace that it allows: none is on record here\n",
		},
		"Unread": {
			reason: "Who may not read policies is told so.", code: exitFinding,
			from: answers{object: head, lists: map[doctor.Source]doctor.List{doctor.AllowancePolicies: {Problem: "forbidden"}}},
			want: "Workspace a/net: apply is not allowed\n- no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, " +
				"that allows {relation: External, mutations: [apply]}\n- what could allow it is not known: forbidden\n",
		},
		"YAML": {
			reason: "Programs read the same.", from: answers{object: granted, lists: map[doctor.Source]doctor.List{doctor.AllowancePolicies: policies}}, format: formatYAML,
			want: "action: apply\nallowed: true\napiVersion: cli.kausality.io/v1alpha1\nby:\n- generation: 5\n  id: \"5.0\"\n  initiator: hans\n  mutations:\n  - apply\n" +
				"  policy: p\n  relation: External\n  source:\n    name: p\n    type: Policy\nkind: Answer\nmissing: []\nobject:\n  apiVersion: example.org/v1\n  generation: 5\n  kind: Workspace\n  name: net\n  namespace: a\n",
		},
		"Broken": {
			reason: "What does not parse is a failure, and not allowed.", code: exitError,
			from: answers{object: head + "  annotations: {\"kausality.io/held\": \"}\"}\n"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer

			err := ask(t.Context(), tc.from, &out, []string{"workspace/net"}, "apply", outputOptions{format: tc.format})
			if code := exitCode(err); code != tc.code {
				t.Errorf("%s\nexit code %d, want %d: %v", tc.reason, code, tc.code, err)
			}

			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
