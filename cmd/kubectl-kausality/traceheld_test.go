// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// A root that anna edited, what it composes, and what each of them says.
const (
	bucket = `
apiVersion: example.org/v1
kind: Bucket
metadata:
  name: logs
  namespace: team-a
  generation: 4
  annotations:
    kausality.io/trace: "[{field: spec.size, generation: 2, initiator: hans}]"
    kausality.io/held: |
      - {field: spec.region, from: eu, cause: {type: Edit, user: anna@example.com, since: "2026-11-22T10:00:00Z"}, stored: {}}
  managedFields:
  - {manager: kubectl-edit, operation: Update, time: "2026-11-22T10:00:00Z", fieldsV1: {"f:spec": {"f:region": {}}}}
spec:
  region: us
  size: 20
  crossplane:
    resourceRefs:
    - {apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, name: logs-1}
    - {apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, name: logs-2}
    - {apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, name: gone}
    - {apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, name: forbidden}
status:
  conditions:
  - type: Kausality
    status: "False"
    reason: Held
    message: 'generation 4: settled; 4 held: Object logs-1: spec.forProvider.region (eu → us): Bucket "logs" is edited by anna@example.com: spec.region; policy "region" allows it only when User hans changes spec.region; Object logs-2: spec.forProvider.size (20 → 52): no policy; Object of composed resource copy is not created: no policy; and 1 more'
  - type: KausalityState
    status: "False"
    reason: Held
    message: '{"v":1,"progress":{"phase":"Settled","generation":4},"changes":[{"ref":{"apiVersion":"kubernetes.m.crossplane.io/v1alpha1","kind":"Object","namespace":"team-a","name":"logs-1"},"field":"spec.forProvider.region","from":"eu","to":"us","missing":"Bucket \"logs\" is edited by anna@example.com: spec.region; policy \"region\" allows it only when User hans changes spec.region"},{"ref":{"apiVersion":"kubernetes.m.crossplane.io/v1alpha1","kind":"Object","namespace":"team-a","name":"logs-2"},"field":"spec.forProvider.size","from":"20","to":"52","missing":"no policy"},{"ref":{"apiVersion":"kubernetes.m.crossplane.io/v1alpha1","kind":"Object","namespace":"team-a","name":"copy"},"composedResource":"copy","field":"create","missing":"no policy"}],"more":1}'
`
	child = `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
metadata:
  name: NAME
  namespace: team-a
  generation: 3
  ownerReferences: [{apiVersion: example.org/v1, kind: Bucket, name: logs, uid: u, controller: true}]
  annotations:
    kausality.io/trace: |
      - {field: create, generation: 1, initiator: hans, trace: [{kind: BucketClaim, namespace: team-b, name: logs, generation: 1, field: create}, {kind: Bucket, namespace: "", name: logs, generation: 1, field: create}, {kind: Object, name: NAME, generation: 1, field: create}]}
    kausality.io/gate: "{v: 1, state: Closed, generation: 2, since: \"2026-11-20T10:00:00Z\"}"
  managedFields:
  - {manager: kubectl-patch, operation: Update, time: "2026-11-22T09:30:00Z", fieldsV1: {"f:spec": {"f:forProvider": {"f:region": {}}}}}
spec: {forProvider: {region: eu, size: 20}}
`
)

func parsed(t *testing.T, text string, pairs ...string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(text)), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

	return u
}

// there finds what is there, by name.
type there map[string]*unstructured.Unstructured

var errForbidden = errors.New("forbidden")

func (t there) find(_ context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	switch u := t[ref.Name]; {
	case u != nil:
		return u, nil
	case ref.Name == "forbidden":
		return nil, errForbidden
	default:
		return nil, served.ErrGone
	}
}

func (t there) Get(ctx context.Context, _, name string) (*unstructured.Unstructured, error) {
	return t.find(ctx, resource.Reference{Name: name})
}

func world(t *testing.T) there {
	t.Helper()

	return there{
		"logs":   parsed(t, bucket),
		"logs-1": parsed(t, child, "NAME", "logs-1"),
		"logs-2": parsed(t, child, "NAME", "logs-2"),
	}
}

// TestATraceSaysHowManyHaveToApprove what follows from an edit whose user may initiate it but
// for that.
func TestATraceSaysHowManyHaveToApprove(t *testing.T) {
	t.Parallel()

	for approvals, want := range map[string]string{
		"0": "not applied. Revert it, or ask someone with permission to apply it",
		"1": "not applied until another person approves it. Approve it, or revert it",
		"2": "not applied until 2 other people approve it. Approve it, or revert it",
	} {
		t.Run(approvals, func(t *testing.T) {
			t.Parallel()

			u := parsed(t, `{apiVersion: example.org/v1, kind: Bucket, metadata: {name: logs, annotations: {kausality.io/held:
  "[{field: spec.region, from: eu, cause: {type: Edit, user: hans, since: 2026-11-22T10:00:00Z}, stored: {approvals: APPROVALS}}]"}}, spec: {region: us}}`, "APPROVALS", approvals)

			doc, err := documentOf(u, related{})
			if err != nil {
				t.Fatal(err)
			}

			want := "spec.region is us (last allowed: eu): saved by hans at 2026-11-22T10:00:00Z, " + want
			if text := strings.Join(strings.Fields(render(u, &doc, false)), " "); !strings.Contains(text, want) {
				t.Errorf("want %q in\n%s", want, text)
			}
		})
	}
}

func TestATraceShowsWhatIsHeldAndWhoStoredIt(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ reason, object, want string }{
		"Root": {
			reason: "The root tells of itself and of what is made for it.", object: "bucket/logs",
			want: `Bucket team-a/logs (example.org/v1, generation 4)

spec.size of generation 2, requested by
hans

Stored, and not allowed:
- spec.region is us (last allowed: eu): saved by anna@example.com at 2026-11-22T10:00:00Z (by
  kubectl-edit), not applied. Revert it, or ask someone with permission to apply it

Held:
- Object team-a/logs-1: spec.forProvider.region (eu → us): Bucket "logs" is edited by
  anna@example.com: spec.region; policy "region" allows it only when User hans changes spec.region
  the stored value was written by kubectl-patch at 2026-11-22T09:30:00Z
- Object team-a/logs-2: spec.forProvider.size (20 → 52): no policy
- Object of composed resource copy: not created: no policy
- 1 more, too many to list

Not shown: cannot read Object forbidden: forbidden
`,
		},
		"Child": {
			reason: "What is made for it tells what its parent's function holds of it.", object: "object/logs-1",
			want: `Object team-a/logs-1 (kubernetes.m.crossplane.io/v1alpha1, generation 3)

create of generation 1, requested by
hans
└─ BucketClaim team-b/logs  create  (generation 1)
   └─ Bucket logs  create  (generation 1)
      └─ Object logs-1  create  (generation 1)

Gate: closed since 2026-11-20T10:00:00Z

Held:
- spec.forProvider.region (eu → us): Bucket "logs" is edited by anna@example.com: spec.region;
  policy "region" allows it only when User hans changes spec.region
  the stored value was written by kubectl-patch at 2026-11-22T09:30:00Z
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var out strings.Builder

			err := trace(t.Context(), world(t), &out, []string{tc.object}, false, outputOptions{})
			if diff := cmp.Diff(tc.want, out.String()); err != nil || diff != "" {
				t.Errorf("%s\ntrace: %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestTheTraceForProgramsSaysWhatTheTextDoes(t *testing.T) {
	t.Parallel()

	for object, want := range map[string]string{
		"bucket/logs":   "logs-1 spec.forProvider.region eu us kubectl-patch, logs-2 spec.forProvider.size 20 52 -,  create   -; 1; - spec.region us eu anna@example.com",
		"object/logs-1": "- spec.forProvider.region eu us kubectl-patch; 0; ",
		"object/logs-2": "- spec.forProvider.size 20 52 -; 0; ",
	} {
		var out strings.Builder
		if err := trace(t.Context(), world(t), &out, []string{object}, false, outputOptions{format: formatJSON}); err != nil {
			t.Fatal(err)
		}

		var doc traceDocument
		if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
			t.Fatal(err)
		}

		if got := inBrief(&doc); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

func inBrief(doc *traceDocument) string {
	named := func(ref *objectRef) string {
		if ref == nil {
			return "-"
		}

		return ref.Name
	}

	held, stored := make([]string, 0, len(doc.Held)), make([]string, 0, len(doc.Stored))

	for _, h := range doc.Held {
		by := "-"
		if h.Stored != nil {
			by = h.Stored.Manager
		}

		held = append(held, strings.Join([]string{named(h.Object), h.Field, h.From, h.To, by}, " "))
	}

	for _, s := range doc.Stored {
		stored = append(stored, strings.Join([]string{named(s.Object), s.Field, s.Value, s.Allowed, s.User}, " "))
	}

	return strings.Join(held, ", ") + "; " + strconv.Itoa(doc.HeldMore) + "; " + strings.Join(stored, ", ")
}

// TestWhatIsNotListedIsCounted of what an annotation does not list, and of what a function does not.
func TestWhatIsNotListedIsCounted(t *testing.T) {
	t.Parallel()

	xr := parsed(t, `
apiVersion: example.org/v1
kind: XBucket
metadata:
  name: x
  annotations:
    kausality.io/held: "[{field: spec.a, to: b, missing: ticket}, {field: spec.b, to: b, missing: ticket}, {field: (2 more), missing: too many to list}]"
spec: {crossplane: {}}
status:
  conditions:
  - {type: Kausality, status: "False", reason: Held, message: 'generation 1: settled; 7 held: ...'}
  - {type: KausalityState, status: "False", reason: Held, message: 'MESSAGE'}`, "MESSAGE",
		`{"v":1,"progress":{"phase":"Settled"},"changes":[{"ref":{"apiVersion":"v1","kind":"Object","name":"o"},"field":"spec.x","from":"1","to":"2",`+
			`"missing":"no"}],"more":3,"passedMore":1}`)

	doc, err := documentOf(xr, related{})
	if err != nil || len(doc.Held) != 3 || doc.HeldMore != 6 {
		t.Errorf("documentOf: %d held and %d more, %v; want 3 and 6", len(doc.Held), doc.HeldMore, err)
	}
}

// TestWhatAClaimAsksForIsNamedByItsWriter where no record says who asked.
func TestWhatAClaimAsksForIsNamedByItsWriter(t *testing.T) {
	t.Parallel()

	claim := parsed(t, `
apiVersion: example.org/v1
kind: BucketClaim
metadata:
  name: mine
  namespace: team-a
  managedFields:
  - {manager: argocd, operation: Apply, time: "2026-11-22T10:00:00Z", fieldsV1: {"f:spec": {"f:size": {}}}}
spec: {size: 52, resourceRef: {apiVersion: example.org/v1, kind: XBucket, name: x}}`)
	xr := parsed(t, `
apiVersion: example.org/v1
kind: XBucket
metadata:
  name: x
  annotations:
    kausality.io/held: "[{field: spec.size, from: '20', to: '52', missing: no ticket}, {field: spec.a, to: b, cause: {type: Edit, user: anna}, missing: no ticket}]"
  managedFields:
  - {manager: apiextensions.crossplane.io/claim, operation: Apply, time: "2026-11-22T10:00:00Z", fieldsV1: {"f:spec": {"f:size": {}}}}
spec: {size: 20, claimRef: {apiVersion: example.org/v1, kind: BucketClaim, namespace: team-a, name: mine}}
status: {conditions: [{type: Kausality, status: "False", reason: Held, message: 'generation 1: settled; 1 held: what an older version wrote'}]}`)

	for object, want := range map[string]string{
		"bucketclaim/mine": `
Held:
- XBucket x: spec.size (20 → 52): no ticket
  the desired value was written by argocd at 2026-11-22T10:00:00Z
- XBucket x: spec.a ((unset) → b): no ticket
  requested by anna
`,
		"xbucket/x": `
Held:
- spec.size (20 → 52): no ticket
  the desired value was written by argocd at 2026-11-22T10:00:00Z
- spec.a ((unset) → b): no ticket
  requested by anna
- generation 1: settled; 1 held: what an older version wrote
`,
	} {
		var out strings.Builder

		err := trace(t.Context(), there{"mine": claim, "x": xr}, &out, []string{object}, false, outputOptions{})
		if err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %v, %s\nwant at its end: %s", object, err, out.String(), want)
		}
	}
}

func TestLinesForPeopleAreNoLongerThanAsked(t *testing.T) {
	t.Parallel()

	word := strings.Repeat("x", 120)
	text := "- " + strings.Repeat("Grüße ", 300) + "\n\n   └─ " + strings.Repeat("a ", 70) + "\n" + word + " b\nshort\nwithout an end"

	for _, width := range []int{defaultWidth, minWidth} {
		got := wrap(text, width)
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, word) {
				t.Errorf("a line of %d characters, want %d at most: %q", n, width, line)
			}
		}

		if diff := cmp.Diff(strings.Fields(text), strings.Fields(got)); diff != "" {
			t.Errorf("words, -want, +got:\n%s", diff)
		}
	}

	if got := widthOf(&strings.Builder{}); got != defaultWidth {
		t.Errorf("a line that goes to no terminal has %d characters, want %d", got, defaultWidth)
	}
}
