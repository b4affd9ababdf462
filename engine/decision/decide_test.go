// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	crossplaneUser = "system:serviceaccount:crossplane-system:crossplane"
	managerUser    = "system:serviceaccount:kausality-system:kausality-manager"
	providerUser   = "system:serviceaccount:crossplane-system:provider"
)

func hans() policy.User {
	return policy.User{Name: "hans@example.com", Groups: []string{"platform-team"}}
}

func anna() policy.User { return policy.User{Name: "anna@example.com", Groups: []string{"app-team"}} }

func crossplane() policy.User { return policy.User{Name: crossplaneUser} }

// object decodes YAML the way the API server decodes JSON.
func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()

	if text == "" {
		return nil
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		tb.Fatal(err)
	}

	u.Object, _ = resource.Normalize(u.Object).(map[string]any)

	return u
}

// examplePolicies are those of the example that the demo plays.
func examplePolicies(tb testing.TB) *policy.Set {
	tb.Helper()

	raw, err := os.ReadFile("../../examples/claim-with-ticket/policies.yaml")
	if err != nil {
		tb.Fatal(err)
	}

	var list []v1alpha1.AllowancePolicy

	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw))

	for {
		p := v1alpha1.AllowancePolicy{}

		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			tb.Fatal(err)
		}

		list = append(list, p)
	}

	set, bad := policy.NewCache().Set(list)
	if len(bad) > 0 {
		tb.Fatal(bad)
	}

	return set
}

const claim = `
apiVersion: example.org/v1alpha1
kind: DatabaseClaim
metadata:
  name: my-database
  namespace: default
  generation: 4
  annotations:
    jira: INFRA-23232
    kausality.io/initialized: "true"
spec:
  size: small
  engine: postgres
  resourceRef: {apiVersion: example.org/v1alpha1, kind: XDatabase, name: my-database-xyz}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 4}
  - {type: Ready, status: "True", observedGeneration: 4}
`

const claimAllowances = `
    kausality.io/allowances: |
      - kind: XDatabase
        mutation: spec.size
        generation: 5
        initiator: hans@example.com
        policy: database-claim-to-xr
        trace:
        - kind: DatabaseClaim
          name: my-database
          generation: 5
          field: spec.size
          attestations:
            metadata.annotations[jira]: INFRA-23232
`

const xr = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  generation: 11
  annotations:
    kausality.io/initialized: "true"
spec:
  size: small
  engine: postgres
  claimRef: {apiVersion: example.org/v1alpha1, kind: DatabaseClaim, namespace: default, name: my-database}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 11}
  - {type: Ready, status: "True", observedGeneration: 11}
  - {type: Kausality, status: "True", reason: Allowed, message: "generation 11: settled"}
`

const xrAllowances = `
    kausality.io/allowances: |
      - apiGroup: kubernetes.crossplane.io
        kind: Object
        mutation: spec.forProvider.manifest.data.size
        generation: 12
        initiator: hans@example.com
        policy: xdatabase-to-object
        trace:
        - {kind: DatabaseClaim, name: my-database, generation: 5, field: spec.size}
        - {kind: XDatabase, name: my-database-xyz, generation: 12, field: spec.size}
      - relation: External
        mutations: [Update]
        generation: 12
        initiator: hans@example.com
        policy: xdatabase-to-object
        trace:
        - {kind: DatabaseClaim, name: my-database, generation: 5, field: spec.size}
        - {kind: XDatabase, name: my-database-xyz, generation: 12, field: spec.size}
`

const managed = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  name: my-database-xyz-obj
  generation: 7
  annotations:
    kausality.io/gate: "{state: Closed, generation: 7, since: 2026-01-01T00:00:00Z, consumed: 3}"
  ownerReferences:
  - {apiVersion: example.org/v1alpha1, kind: XDatabase, name: my-database-xyz, uid: u1, controller: true}
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {manifest: {data: {size: small, engine: postgres}}}
`

// edit returns YAML with texts replaced, in pairs of old and new.
func edit(tb testing.TB, text string, pairs ...string) string {
	tb.Helper()

	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			tb.Fatalf("%q is not in the fixture", pairs[i])
		}

		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}

	return text
}

// annotated puts annotations at the end of those an object has.
func annotated(tb testing.TB, text, annotations string) string {
	tb.Helper()

	mark := "    kausality.io/initialized: \"true\"\n"

	return edit(tb, text, mark, mark+strings.TrimPrefix(annotations, "\n"))
}

func decide(t *testing.T, user policy.User, old, obj, parent string) decision.Decision {
	t.Helper()

	req := request(t, user, old, obj, parent)

	return decision.Decide(req)
}

func request(tb testing.TB, user policy.User, old, obj, parent string) decision.Request {
	tb.Helper()

	op := decision.OperationUpdate

	switch {
	case old == "":
		op = decision.OperationCreate
	case obj == "":
		op = decision.OperationDelete
	}

	return decision.Request{
		Operation: op, Old: object(tb, old), New: object(tb, obj), Parent: object(tb, parent), User: user,
		Policies: examplePolicies(tb),
		Settings: decision.Settings{Crossplane: crossplaneUser, Manager: managerUser},
		Now:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestAnAllowedChangeStampsWhatMayFollow(t *testing.T) {
	cases := map[string]struct {
		reason           string
		user             policy.User
		old, obj, parent string
		allowances       string
		trace            string
	}{
		"Claim": {
			reason: "A root's change by an initiator starts a chain, with the ticket captured.",
			user:   hans(),
			old:    claim,
			obj:    edit(t, claim, "size: small", "size: large"),
			allowances: `- kind: XDatabase
  mutation: spec.size
  generation: 5
  initiator: hans@example.com
  policy: database-claim-to-xr
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
- kind: XDatabase
  mutation: spec.engine
  generation: 5
  initiator: hans@example.com
  policy: database-claim-to-xr
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
`,
			trace: `- field: spec.size
  generation: 5
  initiator: hans@example.com
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
`,
		},
		"CompositeWithTheClaimsAnnotations": {
			reason: "The XR gets its own allowances, in place of the Claim's that Crossplane copies to it.",
			user:   crossplane(),
			old:    xr,
			obj:    annotated(t, edit(t, xr, "size: small", "size: large"), claimAllowances),
			parent: annotated(t, edit(t, claim, "generation: 4", "generation: 5"), claimAllowances),
			allowances: `- apiGroup: kubernetes.crossplane.io
  kind: Object
  mutation: spec.forProvider.manifest.data.size
  generation: 12
  initiator: hans@example.com
  policy: xdatabase-to-object
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.size
- relation: External
  mutations:
  - Update
  generation: 12
  initiator: hans@example.com
  policy: xdatabase-to-object
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.size
`,
			trace: `- field: spec.size
  generation: 12
  initiator: hans@example.com
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.size
`,
		},
		"ManagedResource": {
			reason: "The External entry rides along with the change that the same policy allows, with the resource's own hop.",
			user:   crossplane(),
			old:    managed,
			obj:    edit(t, managed, "size: small", "size: large"),
			parent: annotated(t, edit(t, xr, "generation: 11", "generation: 12"), xrAllowances),
			allowances: `- relation: External
  mutations:
  - Update
  generation: 8
  initiator: hans@example.com
  policy: xdatabase-to-object
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.size
  - kind: Object
    name: my-database-xyz-obj
    generation: 8
    field: spec.forProvider.manifest.data.size
`,
			trace: `- field: spec.forProvider.manifest.data.size
  generation: 8
  initiator: hans@example.com
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.size
  - kind: Object
    name: my-database-xyz-obj
    generation: 8
    field: spec.forProvider.manifest.data.size
`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tc.user, tc.old, tc.obj, tc.parent)
			if !d.Allowed() || len(d.Problems) > 0 || len(d.Forged) > 0 {
				t.Fatalf("%s\nDecide: findings %+v, problems %v, forged %v", tc.reason, d.Findings, d.Problems, d.Forged)
			}

			if diff := cmp.Diff(tc.allowances, resource.Annotation(d.Object, v1alpha1.AnnotationAllowances)); diff != "" {
				t.Errorf("%s\nallowances, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.trace, resource.Annotation(d.Object, v1alpha1.AnnotationTrace)); diff != "" {
				t.Errorf("%s\ntrace, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAChangeThatNobodyAskedForIsUnallowedAndSaysWhatIsMissing(t *testing.T) {
	consumed := edit(t, annotated(t, claim, claimAllowances), "generation: 4\n  annotations", "generation: 5\n  annotations")
	consumed = edit(t, consumed, "observedGeneration: 4", "observedGeneration: 5")
	failed := edit(t, annotated(t, claim, claimAllowances), "observedGeneration: 4", "observedGeneration: 5")
	failed = edit(t, failed, `type: Synced, status: "True"`, `type: Synced, status: "False"`)

	cases := map[string]struct {
		reason           string
		user             policy.User
		old, obj, parent string
		allowed          bool
		missing          []string
	}{
		"Subject": {
			reason:  "anna is not in the platform team.",
			user:    anna(),
			old:     claim,
			obj:     edit(t, claim, "size: small", "size: large"),
			missing: []string{`policy "database-claim-to-xr"`, `user "anna@example.com"`, "Group platform-team"},
		},
		"CEL": {
			reason:  "hans takes the ticket away in the same write.",
			user:    hans(),
			old:     claim,
			obj:     edit(t, claim, "size: small", "size: large", "    jira: INFRA-23232\n", ""),
			missing: []string{`policy "database-claim-to-xr"`, "has(object.metadata.annotations['jira'])", "is false"},
		},
		"NoAllowance": {
			reason:  "A steady parent allows nothing by itself, and the nearest policy is named.",
			user:    crossplane(),
			old:     xr,
			obj:     edit(t, xr, "size: small", "size: large"),
			parent:  claim,
			missing: []string{`DatabaseClaim "my-database" has no allowance`, `policy "database-claim-to-xr"`, "Group platform-team"},
		},
		"Consumed": {
			reason:  "An allowance whose generation the parent has synced has served.",
			user:    crossplane(),
			old:     xr,
			obj:     edit(t, xr, "size: small", "size: large"),
			parent:  consumed,
			missing: []string{"is consumed", "generation 5"},
		},
		"FailedIsNotConsumed": {
			reason:  "Synced=False carries an observedGeneration too, and consumes nothing.",
			user:    crossplane(),
			old:     xr,
			obj:     edit(t, xr, "size: small", "size: large"),
			parent:  failed,
			allowed: true,
		},
		"Exercise": {
			reason:  "A policy that lists subjects without mayInitiate lets only those exercise what it allows.",
			user:    policy.User{Name: providerUser},
			old:     managed,
			obj:     edit(t, managed, "size: small", "size: large"),
			parent:  annotated(t, edit(t, xr, "generation: 11", "generation: 12"), xrAllowances),
			missing: []string{"may not exercise it", "crossplane-system/crossplane"},
		},
		"Initializing": {
			reason:  "A parent that was never ready may build up its children.",
			user:    crossplane(),
			old:     managed,
			obj:     edit(t, managed, "size: small", "size: large"),
			parent:  edit(t, xr, "    kausality.io/initialized: \"true\"\n", "    a: b\n", `type: Ready, status: "True"`, `type: Ready, status: "False"`),
			allowed: true,
		},
		"LateInitialization": {
			reason:  "A provider may fill in what was unset.",
			user:    policy.User{Name: providerUser},
			old:     managed,
			obj:     edit(t, managed, "engine: postgres}", "engine: postgres, zone: a}"),
			parent:  xr,
			allowed: true,
		},
		"ProviderChangesAValue": {
			reason:  "Filling in is not changing.",
			user:    policy.User{Name: providerUser},
			old:     managed,
			obj:     edit(t, managed, "engine: postgres}", "engine: mysql}"),
			parent:  xr,
			missing: []string{`XDatabase "my-database-xyz" has no allowance`, `"xdatabase-to-object-destructive"`},
		},
		"Machinery": {
			reason:  "Crossplane's own bookkeeping is never gated.",
			user:    crossplane(),
			old:     xr,
			obj:     edit(t, xr, "  claimRef:", "  resourceRefs: [{kind: Object, name: a}]\n  claimRef:"),
			parent:  claim,
			allowed: true,
		},
		"DroppedController": {
			reason:  "One write must not free an object from its parent.",
			user:    anna(),
			old:     managed,
			obj:     edit(t, managed, ", controller: true", ""),
			parent:  xr,
			missing: []string{"has no allowance"},
		},
		"GatesField": {
			reason:  "The gate's field is the guard's business.",
			user:    crossplane(),
			old:     managed,
			obj:     edit(t, managed, "[Observe, LateInitialize]", "['*']"),
			parent:  xr,
			allowed: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tc.user, tc.old, tc.obj, tc.parent)
			if d.Allowed() != tc.allowed {
				t.Fatalf("%s\nDecide: allowed %v, findings %+v", tc.reason, d.Allowed(), d.Findings)
			}

			var missing strings.Builder
			for _, f := range d.Findings {
				missing.WriteString(f.Missing())
			}

			for _, w := range tc.missing {
				if !strings.Contains(missing.String(), w) {
					t.Errorf("%s\nmissing: %q does not say %q", tc.reason, missing.String(), w)
				}
			}

			if why, denied := d.Denied(); denied {
				t.Errorf("%s\nDenied: %q, without an Enforcement", tc.reason, why)
			}
		})
	}
}

func TestAClaimsXRIsHeldFieldByField(t *testing.T) {
	parent := annotated(t, edit(t, claim, "size: small", "size: large", "engine: postgres", "engine: mysql"),
		strings.ReplaceAll(claimAllowances, "mutation: spec.size", "mutation: spec.engine"))

	// Crossplane applies the whole Claim: size is not allowed, engine is.
	d := decide(t, crossplane(), xr, edit(t, xr, "size: small", "size: large", "engine: postgres", "engine: mysql"), parent)

	if got := resource.String(d.Object.Object, "spec", "size"); got != "small" {
		t.Errorf("spec.size is %q, want it held at small", got)
	}

	if got := resource.String(d.Object.Object, "spec", "engine"); got != "mysql" {
		t.Errorf("spec.engine is %q, want the allowed mysql", got)
	}

	held, err := allowance.ParseHeld(d.Object)
	if err != nil || len(held) != 1 || held[0].Field != "spec.size" || held[0].From != "small" || held[0].To != "large" {
		t.Fatalf("held: %+v, %v", held, err)
	}

	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "spec.size stays small (asked: large)") {
		t.Errorf("warnings: %q", d.Warnings)
	}

	// Somebody else's write says nothing of the Claim's wish: the record stays.
	next := d.Object.DeepCopy()
	next.SetLabels(map[string]string{"a": "b"})
	again := decision.Decide(decision.Request{
		Operation: decision.OperationUpdate, Old: d.Object, New: next, Parent: object(t, parent), User: crossplane(),
		Policies: examplePolicies(t), Settings: decision.Settings{Crossplane: crossplaneUser, Manager: managerUser},
	})

	if diff := cmp.Diff(resource.Annotation(d.Object, v1alpha1.AnnotationHeld), resource.Annotation(again.Object, v1alpha1.AnnotationHeld)); diff != "" {
		t.Errorf("held after another write, -want, +got:\n%s", diff)
	}

	// The Claim takes its wish back: nothing is held any more.
	done := decision.Decide(decision.Request{
		Operation: decision.OperationUpdate, Old: d.Object, New: next, Parent: object(t, edit(t, claim, "engine: postgres", "engine: mysql")),
		User: crossplane(), Policies: examplePolicies(t), Settings: decision.Settings{Crossplane: crossplaneUser, Manager: managerUser},
	})
	if got := resource.Annotation(done.Object, v1alpha1.AnnotationHeld); got != "" {
		t.Errorf("held after the Claim agrees: %q", got)
	}
}

func TestOnlyKausalityWritesItsAnnotations(t *testing.T) {
	own := annotated(t, claim, "    kausality.io/allowances: |\n      []\n")

	cases := map[string]struct {
		reason   string
		user     policy.User
		old, obj string
		want     string
		forged   bool
	}{
		"ForgedByAPerson": {
			reason: "A person who makes a value up is told.",
			user:   hans(), old: own, obj: annotated(t, claim, claimAllowances), want: "[]\n", forged: true,
		},
		"ForgedByAController": {
			reason: "A controller copies without meaning anything by it.",
			user:   crossplane(), old: own, obj: annotated(t, claim, claimAllowances), want: "[]\n",
		},
		"DroppedByAPerson": {
			reason: "What is dropped comes back.",
			user:   hans(), old: own, obj: claim, want: "[]\n",
		},
		"CopiedOnCreate": {
			reason: "A copied or restored object starts without allowances.",
			user:   anna(), obj: annotated(t, claim, claimAllowances), want: "",
		},
		"WrittenByTheManager": {
			reason: "The manager prunes.",
			user:   policy.User{Name: managerUser}, old: annotated(t, claim, claimAllowances), obj: own, want: "[]\n",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tc.user, tc.old, tc.obj, "")
			if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); got != tc.want {
				t.Errorf("%s\nallowances: %q, want %q", tc.reason, got, tc.want)
			}

			if _, denied := d.Denied(); denied != tc.forged {
				t.Errorf("%s\nDenied: %v, want %v", tc.reason, denied, tc.forged)
			}
		})
	}
}

func TestAnUnallowedChangeTakesTheAllowanceOfTheSameFieldAway(t *testing.T) {
	// Crossplane has not carried hans's change on yet.
	waiting := annotated(t, edit(t, claim, "size: small", "size: large", "generation: 4", "generation: 5"), claimAllowances)

	d := decide(t, anna(), waiting, edit(t, waiting, "size: large", "size: medium"), "")
	if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); got != allowance.None {
		t.Errorf("after anna's change of spec.size the Claim still allows %q on hans's behalf", got)
	}

	d = decide(t, anna(), waiting, edit(t, waiting, "engine: postgres", "engine: mysql"), "")
	if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); !strings.Contains(got, "mutation: spec.size") {
		t.Errorf("after anna's change of another field the Claim allows only %q", got)
	}
}

func TestANewRootIsMadeWithoutAWarning(t *testing.T) {
	d := decide(t, anna(), "", edit(t, claim, "    jira: INFRA-23232\n", ""), "")
	if len(d.Warnings) > 0 {
		t.Errorf("warnings about what may follow, though all may until the Claim is ready: %q", d.Warnings)
	}

	entries, err := allowance.ParseTrace(d.Object)
	if err != nil || len(entries) != 1 || entries[0].Field != "create" || entries[0].Initiator != "anna@example.com" {
		t.Errorf("trace: %+v, %v; want anna's creation", entries, err)
	}

	if got := resource.Annotation(d.Object, v1alpha1.AnnotationAllowances); got != "" {
		t.Errorf("allowances: %q, want none", got)
	}
}

func TestAMalformedAnnotationIsReportedAndAllowsNothing(t *testing.T) {
	parent := annotated(t, claim, "    kausality.io/allowances: \"- kind: [\"\n")
	d := decide(t, crossplane(), xr, edit(t, xr, "size: small", "size: large"), parent)

	if d.Allowed() {
		t.Error("Decide: a malformed annotation allowed a change")
	}

	if len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Error(), `DatabaseClaim "my-database": cannot parse annotation "kausality.io/allowances"`) {
		t.Errorf("problems: %v", d.Problems)
	}
}

func TestAnUpgradeAllowanceOpensAWindow(t *testing.T) {
	window := func(from, until string, change func(*v1alpha1.UpgradeAllowance)) v1alpha1.UpgradeAllowance {
		u := v1alpha1.UpgradeAllowance{}
		u.SetName("upgrade")
		u.Spec.ServiceAccount = crossplaneUser
		u.Spec.Allow = []v1alpha1.Permission{
			{Kind: "Object", Mutations: []string{"spec.forProvider"}},
			{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}},
		}

		for text, into := range map[string]*time.Time{from: &u.Spec.ValidFrom.Time, until: &u.Spec.ValidUntil.Time} {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}

			*into = at
		}

		if change != nil {
			change(&u)
		}

		return u
	}

	const before, now, after = "2026-01-02T03:04:00Z", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"

	cases := map[string]struct {
		reason string
		window v1alpha1.UpgradeAllowance
		want   bool
	}{
		"Open":       {reason: "Inside the window.", window: window(before, after, nil), want: true},
		"AtStart":    {reason: "The start is inclusive.", window: window(now, after, nil), want: true},
		"AtEnd":      {reason: "The end is exclusive.", window: window(before, now, nil)},
		"Other":      {reason: "Another user.", window: window(before, after, func(u *v1alpha1.UpgradeAllowance) { u.Spec.ServiceAccount = providerUser })},
		"Namespace":  {reason: "Cluster-scoped objects are in no namespace.", window: window(before, after, func(u *v1alpha1.UpgradeAllowance) { u.Spec.Namespaces = []string{"a"} })},
		"NotActive":  {reason: "activateWhen is not met.", window: window(before, after, func(u *v1alpha1.UpgradeAllowance) { u.Spec.ActivateWhen = &v1alpha1.ActivateWhen{} })},
		"OtherField": {reason: "Not what it allows.", window: window(before, after, func(u *v1alpha1.UpgradeAllowance) { u.Spec.Allow[0].Mutations = []string{"spec.x"} })},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, crossplane(), managed, edit(t, managed, "size: small", "size: large"), xr)
			req.Upgrades = []v1alpha1.UpgradeAllowance{tc.window}

			d := decision.Decide(req)
			if d.Allowed() != tc.want {
				t.Fatalf("%s\nDecide: %+v", tc.reason, d.Findings)
			}

			list, err := allowance.Parse(d.Object)
			if external := len(list) == 1 && allowance.External(list[0]); err != nil || external != tc.want {
				t.Errorf("%s\nallowances: %+v, %v", tc.reason, list, err)
			}

			if got := resource.Annotation(d.Object, v1alpha1.AnnotationLastUpgrade); (got == "upgrade") != tc.want {
				t.Errorf("%s\nlast-upgrade: %q", tc.reason, got)
			}
		})
	}
}

func TestTheSameRequestGivesTheSameBytes(t *testing.T) {
	obj := edit(t, claim, "size: small", "size: large")
	first := decide(t, hans(), claim, obj, "")

	for range 20 {
		if diff := cmp.Diff(first.Object, decide(t, hans(), claim, obj, "").Object); diff != "" {
			t.Fatalf("-first, +again:\n%s", diff)
		}
	}
}

func TestARequestAboutNothingIsAProblem(t *testing.T) {
	for name, req := range map[string]decision.Request{
		"Nothing": {Operation: decision.OperationUpdate},
		"Empty":   {Operation: decision.OperationCreate, New: &unstructured.Unstructured{}},
	} {
		if d := decision.Decide(req); len(d.Problems) != 1 || d.Object != nil || len(d.Findings) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheOperationFollowsTheObjects(t *testing.T) {
	obj := object(t, claim)

	for name, tc := range map[string]struct {
		req  decision.Request
		want string
	}{
		"Create": {decision.Request{New: obj}, "create"},
		"Delete": {decision.Request{Operation: decision.OperationUpdate, Old: obj}, "delete"},
		"Over":   {decision.Request{Operation: decision.OperationCreate, Old: obj, New: obj}, "create"},
	} {
		if d := decision.Decide(tc.req); len(d.Findings) != 1 || d.Findings[0].Change.Field != tc.want {
			t.Errorf("%s: %+v", name, d.Findings)
		}
	}
}
