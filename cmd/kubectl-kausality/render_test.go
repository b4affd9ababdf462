// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const gated = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  name: db-x7k2p
  generation: 6
  annotations:
    kausality.io/gate: |
      v: 1
      state: Open
      actions: [Update]
      generation: 6
      since: "2026-11-20T10:00:00Z"
    kausality.io/allowances: |
      - relation: External
        mutations: [Update]
        generation: 5
        id: "5.0"
        initiator: hans@example.com
        policy: xdatabase-to-object
        source:
          type: Policy
          name: xdatabase-to-object
    kausality.io/trace: |
      - field: spec.forProvider.manifest.data.size
        generation: 5
        initiator: hans@example.com
        trace:
        - {kind: DatabaseClaim, name: my-database, generation: 2, field: spec.size, attestations: {"metadata.annotations[jira]": INFRA-1}}
        - {kind: XDatabase, name: my-database-x7k2p, generation: 5, field: spec.size}
        - {kind: Object, name: db-x7k2p, generation: 5, field: spec.forProvider.manifest.data.size}
      - field: create
        generation: 1
        initiator: anna@example.com
`

func TestAnObjectIsRenderedForAPerson(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		all    bool
		want   string
		err    string
	}{
		"Gated": {
			reason: "The newest change comes as a tree from the person to the field, with gate and what may follow.",
			object: gated,
			want: `Object db-x7k2p (kubernetes.crossplane.io/v1alpha2, generation 6)

spec.forProvider.manifest.data.size of generation 5, requested by
hans@example.com
└─ DatabaseClaim my-database  spec.size  (generation 2)
      metadata.annotations[jira] = INFRA-1
   └─ XDatabase my-database-x7k2p  spec.size  (generation 5)
      └─ Object db-x7k2p  spec.forProvider.manifest.data.size  (generation 5)

Earlier changes are recorded too (1): show them with --all.

Gate: open for Update since 2026-11-20T10:00:00Z

May still follow:
- external Update, requested by hans@example.com (generation 5, policy xdatabase-to-object)
`,
		},
		"Approved": {
			reason: "Who approved a change is not who asked for it, and both are worth a line, with the reason.",
			object: `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-1
  generation: 4
  annotations:
    kausality.io/allowances: "[{relation: External, mutations: [Update], generation: 4, initiator: anna@example.com, digest: 'sha256:ab', approval: u, id: '4.0', source: {type: Policy}}]"
    kausality.io/trace: |
      - field: spec.forProvider.engineVersion
        generation: 4
        initiator: anna@example.com
        trace:
        - {kind: ChangeApproval, namespace: team, name: claim-db-1f0c-k2x, generation: 1, field: spec, attestations: {reason: "OPS-1, read by two", requester: hans@example.com}}
        - {kind: Database, name: db-x, generation: 7, field: spec.engineVersion}
        - {kind: Instance, name: db-1, generation: 4, field: spec.forProvider.engineVersion}
`,
			want: `Instance db-1 (rds.example.org/v1, generation 4)

spec.forProvider.engineVersion of generation 4, approved by
anna@example.com
└─ ChangeApproval team/claim-db-1f0c-k2x
      requested by hans@example.com
      because: OPS-1, read by two
   └─ Database db-x  spec.engineVersion  (generation 7)
      └─ Instance db-1  spec.forProvider.engineVersion  (generation 4)

May still follow:
- external Update, approved by anna@example.com (generation 4)
`,
		},
		"WithoutAPolicy": {
			reason: "What is made while its parent is initializing is allowed by no policy, and none is named.",
			object: `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
metadata:
  name: sessions
  generation: 2
  annotations:
    kausality.io/allowances: "[{relation: External, mutations: [Create, Update], generation: 1, initiator: hans@example.com, id: '1.0', source: {type: Creation}}]"
    kausality.io/trace: "[{field: create, generation: 1, initiator: hans@example.com}]"
`,
			want: `Object sessions (kubernetes.m.crossplane.io/v1alpha1, generation 2)

create of generation 1, requested by
hans@example.com

May still follow:
- external Create, Update, requested by hans@example.com (generation 1)
`,
		},
		"Ungated": {
			reason: "That nothing keeps a provider from acting is worth a line.",
			object: `
apiVersion: nop.crossplane.io/v1alpha1
kind: NopResource
metadata:
  name: yard
  generation: 2
  annotations:
    kausality.io/gate: "v: 1\nstate: Ungated\n"
    kausality.io/trace: "[{field: create, generation: 1, initiator: hans@example.com}]"
`,
			want: `NopResource yard (nop.crossplane.io/v1alpha1, generation 2)

create of generation 1, requested by
hans@example.com

Gate: none, for the provider does not support management policies
`,
		},
		"Untouched": {
			reason: "An object we know nothing of gets a sentence and not an empty page.",
			object: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: plain
  namespace: default
  ownerReferences: [{apiVersion: v1, kind: Pod, name: owner, uid: u, controller: true}]`,
			want: `ConfigMap default/plain (v1, generation 0)

No change of it is recorded: it was made before Kausality, or no AllowancePolicy is about it.
Its parent is Pod owner.
`,
		},
		"Held": {
			reason: "What is held comes with the reason.",
			object: `
apiVersion: example.org/v1
kind: XDatabase
metadata:
  name: db
  annotations:
    kausality.io/trace: "[{field: create, generation: 1, initiator: hans}]"
    kausality.io/held: "[{field: spec.size, from: small, to: large, missing: no ticket}]"`,
			want: `XDatabase db (example.org/v1, generation 0)

create of generation 1, requested by
hans

Held:
- spec.size (small → large): no ticket
`,
		},
		"Malformed": {
			reason: "An annotation that does not parse is named.",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, annotations: {kausality.io/trace: "{"}}}`,
			err:    `ConfigMap bad: cannot parse annotation "kausality.io/trace"`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &u.Object); err != nil {
				t.Fatal(err)
			}

			var got string

			doc, err := documentOf(u, related{})
			if err == nil {
				got = wrap(render(u, &doc, tc.all), defaultWidth)
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nrender: got error %v, want %q", tc.reason, err, tc.err)
				}

				return
			}

			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s\nrender: %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// fakeGetter returns what it is asked for as an object of that kind.
type fakeGetter struct{ err error }

func (f fakeGetter) Get(_ context.Context, kind, name string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name},
	}}, f.err
}

func TestAnObjectIsNamedAsKindAndName(t *testing.T) {
	errGone := errors.New("gone")

	cases := map[string]struct {
		reason string
		args   []string
		from   fakeGetter
		want   string
		err    error
	}{
		"Slash":   {reason: "KIND/NAME is one argument.", args: []string{"pod/a"}, want: "pod a ("},
		"Two":     {reason: "KIND NAME are two.", args: []string{"pod", "a"}, want: "pod a ("},
		"NoName":  {reason: "A kind alone names no object.", args: []string{"pod"}, err: errOneObject},
		"TooMany": {reason: "A name holds no slash.", args: []string{"pod/a/b"}, err: errOneObject},
		"Gone":    {reason: "What cannot be read is an error.", args: []string{"pod/a"}, from: fakeGetter{err: errGone}, err: errGone},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder

			err := trace(t.Context(), tc.from, &out, tc.args, false, outputOptions{})
			if !errors.Is(err, tc.err) || !strings.HasPrefix(out.String(), tc.want) {
				t.Errorf("%s\ntrace: %q, %v; want %q, %v", tc.reason, out.String(), err, tc.want, tc.err)
			}
		})
	}
}
