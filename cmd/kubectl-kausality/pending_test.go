// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const (
	// pendingClaim is a Claim, pendingXR its XR, and pendingInstance what that composes.
	pendingClaim = `
apiVersion: shop.example.org/v1
kind: Claim
metadata: {name: db, namespace: team, uid: claim, resourceVersion: "7", labels: {tier: gold}}
spec: {size: large, resourceRef: {apiVersion: shop.example.org/v1, kind: Database, name: db-x}}
`
	pendingXR = `
apiVersion: shop.example.org/v1
kind: Database
metadata: {name: db-x, uid: xr}
spec: {claimRef: {apiVersion: shop.example.org/v1, kind: Claim, namespace: team, name: db}}
`
	pendingInstance = `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-1
  uid: instance
  ownerReferences: [{apiVersion: shop.example.org/v1, kind: Database, name: db-x, uid: xr, controller: true}]
`
	// pendingHash ends the name of pendingDB.
	pendingHash = "6782be60"
	// pendingDB is what waits at the Claim.
	pendingDB = `
apiVersion: kausality.io/v1alpha1
kind: PendingChange
metadata: {name: claim-db-6782be60, namespace: team}
spec: {objectRef: {apiVersion: shop.example.org/v1, kind: Claim, namespace: team, name: db}}
status:
  digest: sha256:1157
  total: 5
  destroys: 1
  required: 2
  requesters: [hans@example.com, unknown]
  changes:
  - ref: {apiVersion: rds.example.org/v1, kind: Instance, name: old, uid: o}
    field: delete
    digest: sha256:dddd00000000aaaa
    destroys: true
    follows: [Delete]
    cause: {type: Composition, revision: db-5, since: "2026-11-22T09:00:00Z"}
  - ref: {apiVersion: rds.example.org/v1, kind: Instance, name: db-1, uid: instance}
    field: spec.forProvider.rules[2].port
    from: "80"
    to: "443"
    digest: sha256:aaaa00000000bbbb
    follows: [Update]
    missing: no policy allows it
    cause: {type: Edit, user: hans@example.com, since: "2026-11-22T09:30:00Z"}
  - ref: {apiVersion: rds.example.org/v1, kind: Instance, name: db-1, uid: instance}
    field: spec.forProvider.password
    from: (masked)
    to: (masked)
    masked: true
    digest: sha256:aaaa11111111cccc
    cause: {type: Pipeline}
  - ref: {apiVersion: rds.example.org/v1, kind: Instance}
    composedResource: replica
    field: spec.forProvider.stamp
    to: "1763803800"
    digest: sha256:eeee
    unstable: true
    cause: {type: Drift, user: eve@example.com}
  approvals:
  - {name: claim-db-6782be60-k2, digest: "sha256:aaaa00000000bbbb", ref: {apiVersion: rds.example.org/v1, kind: Instance, name: db-1}, field: "spec.forProvider.rules[2].port", user: anna@example.com, state: Waiting, message: 1 of 2}
`
)

// pendingRollout is of a Deployment whose rollout is refused.
const pendingRollout = `
apiVersion: kausality.io/v1alpha1
kind: PendingChange
metadata: {name: deployment-web, namespace: team}
spec: {objectRef: {apiVersion: apps/v1, kind: Deployment, namespace: team, name: web}}
status:
  digest: sha256:1
  total: 1
  requesters: [anna@example.com]
  changes:
  - ref: {apiVersion: apps/v1, kind: Deployment, namespace: team, name: web, uid: web}
    parent: {apiVersion: apps/v1, kind: Deployment, namespace: team, name: web, uid: web}
    field: spec.replicas
    from: "2"
    to: "3"
    digest: sha256:aaaa00000000bbbb
    cause: {type: Edit, user: anna@example.com, since: "2026-11-22T11:00:00Z"}
  refused:
  - {digest: "sha256:1", ref: {apiVersion: apps/v1, kind: ReplicaSet, name: web-1}, field: spec.replicas, user: controller, message: no way}
  - {digest: "sha256:2", ref: {apiVersion: apps/v1, kind: ReplicaSet, name: web-2}, field: spec.replicas, user: controller, message: no way}
  - {digest: "sha256:3", ref: {apiVersion: apps/v1, kind: ReplicaSet, name: web-3}, field: create, user: controller, message: no way}
  - {digest: "sha256:4", ref: {apiVersion: apps/v1, kind: ReplicaSet, name: web-4}, field: create, user: controller, message: no way}
`

func pendingNow() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// pendingIn is a PendingChange in a namespace, of a Claim, with the same change as others.
func pendingIn(t *testing.T, namespace, name string, more ...string) *unstructured.Unstructured {
	t.Helper()

	return parse(t, strings.NewReplacer(append(more, "NAMESPACE", namespace, "NAME", name)...).Replace(`
apiVersion: kausality.io/v1alpha1
kind: PendingChange
metadata: {name: claim-NAME, namespace: NAMESPACE}
spec: {objectRef: {apiVersion: shop.example.org/v1, kind: Claim, namespace: NAMESPACE, name: NAME}}
status:
  digest: sha256:NAME
  total: 1
  changes:
  - ref: {apiVersion: rds.example.org/v1, kind: Instance, name: NAME-1, uid: NAME}
    field: spec.rules[1].port
    from: "80"
    to: "443"
    digest: sha256:NAME00
    cause: {type: Composition, revision: db-5, since: "2026-11-22T09:00:00Z"}
`))
}

const pendingText = `Claim team/db: 5 changes, requested by hans@example.com, unknown
  waits since 2026-11-22T09:00:00Z (3h)
  DESTROYS Instance old is deleted
  - Instance old is deleted
      requested by the Composition, revision db-5
      then the provider does: Delete
  - Instance db-1 spec.forProvider.rules[2].port: 80 -> 443
      requested by an edit by hans@example.com
      then the provider does: Update
      by policy: no policy allows it
      ChangeApproval claim-db-6782be60-k2 by anna@example.com: Waiting, 1 of 2
  - Instance db-1 spec.forProvider.password: (masked) -> (masked)
      requested by the pipeline: a function, or what it reads
  - Instance of composed resource replica spec.forProvider.stamp: (unset) -> 1763803800
      requested by a change by hand of what is composed by eve@example.com
      cannot be approved: the desired value differs each time. Make it stable in the Composition
  - 1 more, too many to list
  2 people have to approve each of them
  to let it through: kubectl kausality approve claim.shop.example.org/db -n team
`

func TestWhatWaitsIsListed(t *testing.T) {
	t.Parallel()

	finished := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		_ = unstructured.SetNestedField(u.Object, "2026-11-22T11:00:00Z", "status", "finishedAt")

		return u
	}

	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		args    []string
		opts    pendingOptions
		want    string
	}{
		"Nothing":           {want: "Nothing is pending in namespace team.\n"},
		"NothingAnywhere":   {opts: pendingOptions{all: true}, want: "Nothing is pending in the cluster.\n"},
		"NothingUnfinished": {objects: []*unstructured.Unstructured{finished(pendingIn(t, "team", "a"))}, want: "Nothing is pending in namespace team.\n"},
		"NothingOfIt": {
			objects: []*unstructured.Unstructured{parse(t, pendingClaim)}, args: []string{"claim/db"}, want: "Nothing is pending at claim/db.\n",
		},
		"OneNamespace": {objects: []*unstructured.Unstructured{parse(t, pendingDB), pendingIn(t, "other", "a")}, want: pendingText},
		"OfWhatIsBelow": {
			objects: []*unstructured.Unstructured{parse(t, pendingDB), parse(t, pendingClaim), parse(t, pendingXR), parse(t, pendingInstance)},
			args:    []string{"instance", "db-1"}, want: pendingText,
		},
		"ByName": {
			objects: []*unstructured.Unstructured{parse(t, pendingDB), pendingIn(t, "team", "a")}, args: []string{"pendingchange/claim-db-6782be60"},
			want: pendingText,
		},
		"RefusedBecauseOfAnEdit": {
			objects: []*unstructured.Unstructured{parse(t, pendingRollout)},
			want: `Deployment team/web: 1 change, requested by anna@example.com
  waits since 2026-11-22T11:00:00Z (60m)
  - Deployment web spec.replicas: 2 -> 3
      requested by an edit by anna@example.com
  refused because of it: spec.replicas of ReplicaSet web-1, to controller
  refused because of it: spec.replicas of ReplicaSet web-2, to controller
  refused because of it: create of ReplicaSet web-3, to controller
  refused because of it: 1 more
  to let it through: kubectl kausality approve deployment.apps/web -n team
`,
		},
		"ByClass": {
			objects: []*unstructured.Unstructured{
				pendingIn(t, "team", "e", "spec.rules[1].port", "create", `"80"`, `""`, `"443"`, `""`),
				pendingIn(t, "team", "c"), pendingIn(t, "team", "d", "[1]", "[7]"), pendingIn(t, "other", "a"), pendingIn(t, "other", "b"),
				pendingIn(t, "team", "f", "spec.rules[1].port", "delete\n    destroys: true", `"80"`, `""`, `"443"`, `""`),
				pendingIn(t, "team", "g", "db-5", "db-6"),
			},
			opts: pendingOptions{all: true, byClass: true},
			want: `1 change of Instance: is deleted
  DESTROYS something
  requested by the Composition, revision db-5
  - Instance f-1, below Claim team/f

4 changes of Instance: spec.rules[*].port: 80 -> 443
  requested by the Composition, revision db-5
  - Instance a-1, below Claim other/a
  - Instance b-1, below Claim other/b
  - Instance c-1, below Claim team/c
  - and 1 more

1 change of Instance: is created
  requested by the Composition, revision db-5
  - Instance e-1, below Claim team/e

1 change of Instance: spec.rules[*].port: 80 -> 443
  requested by the Composition, revision db-6
  - Instance g-1, below Claim team/g
`,
		},
		"NothingToApprove": {
			objects: []*unstructured.Unstructured{pendingIn(t, "team", "a", "    digest: sha256:NAME00\n", "")},
			want: `Claim team/a: 1 change
  waits since 2026-11-22T09:00:00Z (3h)
  - Instance a-1 spec.rules[1].port: 80 -> 443
      requested by the Composition, revision db-5
      cannot be approved: it takes an edit of its parent by someone with permission
`,
		},
		"Names": {
			objects: []*unstructured.Unstructured{pendingIn(t, "team", "b"), pendingIn(t, "team", "a")},
			opts:    pendingOptions{clusterOptions: clusterOptions{outputOptions: outputOptions{format: formatName, objects: true}}},
			want:    "claim.shop.example.org/a\nclaim.shop.example.org/b\n",
		},
		"Programs": {
			objects: []*unstructured.Unstructured{pendingIn(t, "team", "a")},
			opts:    pendingOptions{byClass: true, clusterOptions: clusterOptions{outputOptions: outputOptions{format: formatYAML, objects: true}}},
			want: `apiVersion: cli.kausality.io/v1alpha1
classes:
- apiVersion: rds.example.org/v1
  cause:
    revision: db-5
    type: Composition
  count: 1
  field: spec.rules[*].port
  from: "80"
  kind: Instance
  members:
  - digest: sha256:a00
    object:
      apiVersion: shop.example.org/v1
      kind: Claim
      name: a
      namespace: team
    ref:
      apiVersion: rds.example.org/v1
      kind: Instance
      name: a-1
      uid: a
  to: "443"
kind: PendingList
pending:
- approvals: []
  changes:
  - cause:
      revision: db-5
      since: "2026-11-22T09:00:00Z"
      type: Composition
    digest: sha256:a00
    field: spec.rules[1].port
    from: "80"
    ref:
      apiVersion: rds.example.org/v1
      kind: Instance
      name: a-1
      uid: a
    to: "443"
  command: kubectl kausality approve claim.shop.example.org/a -n team
  current: true
  destroys: 0
  digest: sha256:a
  object:
    apiVersion: shop.example.org/v1
    kind: Claim
    name: a
    namespace: team
  pendingChange:
    apiVersion: kausality.io/v1alpha1
    kind: PendingChange
    name: claim-a
    namespace: team
  requesters: []
  required: 1
  since: "2026-11-22T09:00:00Z"
  total: 1
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, _ := fakeCluster(tc.objects...)

			var out bytes.Buffer
			if err := listPending(t.Context(), c, &out, tc.args, tc.opts, pendingNow()); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestWhatIsAboveAnObjectIsFound and where that is gone the object itself is what people edit.
func TestWhatIsAboveAnObjectIsFound(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		objects []string
		want    string
	}{
		"Claim":     {objects: []string{pendingClaim, pendingXR, pendingInstance}, want: "Claim team/db"},
		"ClaimAway": {objects: []string{pendingXR, pendingInstance}, want: "Database db-x"},
		"XRAway":    {objects: []string{pendingClaim, pendingInstance}, want: "Instance db-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objects := make([]*unstructured.Unstructured, len(tc.objects))
			for i := range tc.objects {
				objects[i] = parse(t, tc.objects[i])
			}

			c, _ := fakeCluster(objects...)

			root, err := c.rootOf(t.Context(), objects[len(objects)-1])
			if err != nil || object(root) != tc.want {
				t.Errorf("%v, %v, want %s", root, err, tc.want)
			}
		})
	}
}

// TestAClusterScopedObjectsChangesAreInKausalitysNamespace whatever namespace is looked at.
func TestAClusterScopedObjectsChangesAreInKausalitysNamespace(t *testing.T) {
	t.Parallel()

	c, _ := fakeCluster(parse(t, pendingXR))

	at, err := c.locatePending(t.Context(), []string{"database/db-x"}, "")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]pendingAt{{"kausality-system", "database-db-x-785b3205"}}, at, cmp.AllowUnexported(pendingAt{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAClusterWithoutPendingChangesSaysSo(t *testing.T) {
	t.Parallel()

	c := &cluster{mapper: meta.NewDefaultRESTMapper(nil), namespace: "team"}

	if err := listPending(t.Context(), c, &bytes.Buffer{}, nil, pendingOptions{}, pendingNow()); !errors.Is(err, errNoPending) {
		t.Errorf("%v", err)
	}
}

// TestNothingInAValueWorksOnATerminal or looks like a line of its own.
func TestNothingInAValueWorksOnATerminal(t *testing.T) {
	t.Parallel()

	e := v1alpha1.HeldChange{Ref: v1alpha1.ObjectReference{Kind: "A", Name: "a"}, Field: "spec.x", From: "\x1b[2Kold\u202e", To: "a\n  - b\tc", Digest: "sha256:1"}
	p := &v1alpha1.PendingChange{Status: v1alpha1.PendingChangeStatus{Total: 1, Changes: []v1alpha1.HeldChange{e}}}
	p.Spec.ObjectRef = e.Ref

	want := "A a: 1 change\n\nA a\n  spec.x  (not known; --change 1)\n" +
		"  - \\x1b[2Kold\\u202e\n  + a\n  +   - b\\tc\n"
	if diff := cmp.Diff(want, choice{change: p, chosen: p.Status.Changes}.diff(paint{}, pendingNow())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if got := heldText(e); got != `spec.x: \x1b[2Kold\u202e -> a\n  - b\tc` {
		t.Errorf("%s", got)
	}
}

// encoded is an object as the API server has it.
func encoded(t *testing.T, p *v1alpha1.PendingChange) *unstructured.Unstructured {
	t.Helper()

	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		t.Fatal(err)
	}

	u := &unstructured.Unstructured{Object: raw}
	u.SetGroupVersionKind(pendingKind())

	return u
}
