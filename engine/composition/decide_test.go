// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const crossplane = "system:serviceaccount:crossplane-system:crossplane"

const steadyXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  generation: 12
  annotations:
    kausality.io/initialized: "true"
    kausality.io/allowances: |
      ALLOWANCES
spec: {size: large}
`

const observedRDS = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata:
  name: db-rds
  generation: 7
  generateName: db-
  labels: {crossplane.io/composite: db, team: a}
  annotations:
    crossplane.io/composition-resource-name: rds
    crossplane.io/external-name: db-external
    kausality.io/management-policies: "['*']\n"
    kausality.io/gate: "{state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}"
  ownerReferences: [{apiVersion: example.org/v1alpha1, kind: XDatabase, name: db, uid: u1, controller: true, blockOwnerDeletion: true}]
  managedFields:
  - manager: apiextensions.crossplane.io/composed/0123
    operation: Apply
    fieldsV1:
      "f:metadata":
        "f:annotations": {"f:crossplane.io/composition-resource-name": {}, "f:kausality.io/management-policies": {}}
        "f:generateName": {}
        "f:labels": {"f:crossplane.io/composite": {}, "f:team": {}}
        "f:ownerReferences": {'k:{"uid":"u1"}': {}}
      "f:spec":
        "f:managementPolicies": {}
        "f:forProvider": {"f:instanceClass": {}, "f:engine": {}, "f:tags": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}, {name: z, value: theirs}], zone: late}
status:
  conditions: [{type: Synced, status: "True", observedGeneration: 7}, {type: Ready, status: "True"}]
`

const desiredRDS = `
apiVersion: rds.aws.upbound.io/v1beta1
kind: RDSInstance
metadata: {labels: {team: a}}
spec: {forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	if text == "" {
		return nil
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = resource.Normalize(u.Object).(map[string]any)

	return u
}

func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()

	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the fixture", pairs[i])
		}

		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}

	return text
}

func allowing(mutation, verbs string) string {
	const trace = "trace: [{kind: XDatabase, name: db, generation: 12, field: spec.size}]"

	return strings.Replace(steadyXR, "ALLOWANCES",
		"[{kind: RDSInstance, mutation: "+mutation+", generation: 12, initiator: hans, "+trace+"}, "+
			"{relation: External, mutations: ["+verbs+"], generation: 12, initiator: hans, "+trace+"}]", 1)
}

func request(t *testing.T, xr, observed, desired string) composition.Request {
	t.Helper()

	return composition.Request{
		XR: object(t, xr), Name: "rds", Observed: object(t, observed), Desired: object(t, desired),
		User: policy.User{Name: crossplane}, Settings: decision.Settings{Crossplane: crossplane}, Mode: v1alpha1.ModeHold,
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func fields(held []composition.Held) []string {
	var out []string //nolint:prealloc // Nil when nothing is held.
	for _, h := range held {
		out = append(out, h.Field)
	}

	return out
}

func TestWhatIsHeldOfAnUpdate(t *testing.T) {
	steady := edit(t, steadyXR, "ALLOWANCES", "[]")

	cases := map[string]struct {
		reason  string
		xr      string
		desired string
		held    []string
		spec    string
	}{
		"Nothing": {
			reason: "What Crossplane and the provider add is no change.", xr: steady, desired: desiredRDS,
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
		"Scalar": {
			reason: "A field keeps its observed value.", xr: steady, desired: edit(t, desiredRDS, "instanceClass: small", "instanceClass: large"),
			held: []string{"spec.forProvider.instanceClass"},
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
		"Beside": {
			reason: "What is allowed passes beside it.", xr: allowing("spec.forProvider.engine", "Update"),
			desired: edit(t, desiredRDS, "instanceClass: small, engine: postgres", "instanceClass: large, engine: mysql"),
			held:    []string{"spec.forProvider.instanceClass"},
			spec:    "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: mysql, tags: [{name: a, value: b}]}}",
		},
		"RemovedElement": {
			reason: "An owned element that is no longer desired is a removal, though its list is not mentioned at all.",
			xr:     steady, desired: edit(t, desiredRDS, ", tags: [{name: a, value: b}]", ""),
			held: []string{"spec.forProvider.tags[0].name", "spec.forProvider.tags[0].value"},
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, " +
				"tags: [{name: a, value: b}]}}",
		},
		"Opened": {
			reason: "The gate's field is stamped as observed, whatever is desired.", xr: steady,
			desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: ['*'], "),
			spec:    "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, tc.xr, observedRDS, tc.desired)
			before := []any{req.XR.DeepCopy(), req.Observed.DeepCopy(), req.Desired.DeepCopy()}
			out := composition.Decide(req)

			if diff := cmp.Diff(tc.held, fields(out.Held)); diff != "" || len(out.Problems) > 0 {
				t.Fatalf("%s\nheld, -want, +got:\n%s\nproblems %v", tc.reason, diff, out.Problems)
			}

			if diff := cmp.Diff(object(t, tc.spec).Object, out.Desired.Object["spec"]); diff != "" {
				t.Errorf("%s\nspec, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, []any{req.XR, req.Observed, req.Desired}); diff != "" {
				t.Errorf("%s\nDecide changed its request:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMetadataThatCrossplaneAddsLaterIsNoRemoval(t *testing.T) {
	raw := &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{Kind: "RDSInstance", Fields: []string{"metadata"}},
		Allow: []v1alpha1.Permission{{Kind: "A", Mutations: []string{"spec"}}},
	}}

	p, errs := policy.Compile(raw)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	for desired, want := range map[string][]string{
		desiredRDS: nil,
		edit(t, desiredRDS, "metadata: {labels: {team: a}}\n", ""):                       {"metadata.labels.team"},
		edit(t, desiredRDS, "labels: {team: a}", "labels: {crossplane.io/composite: x}"): {"metadata.labels.team", "metadata.labels[crossplane.io/composite]"},
	} {
		req := request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), observedRDS, desired)
		req.Policies = policy.NewSet(p)

		if diff := cmp.Diff(want, fields(composition.Decide(req).Held)); diff != "" {
			t.Errorf("held of\n%s\n-want, +got:\n%s", desired, diff)
		}
	}
}

func TestAResourceIsRemovedInTwoSteps(t *testing.T) {
	xr := allowing("delete", "Delete")

	// 1. It stays desired, with the allowance to delete its external resource.
	out := composition.Decide(request(t, xr, observedRDS, ""))
	if !out.Kept || out.Desired == nil || len(out.Held) > 0 || out.Pending != "RDSInstance db-rds waits for its gate to open for Delete" {
		t.Fatalf("first run: %+v", out)
	}

	got := resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances)
	want := `- relation: External
  mutations:
  - Delete
  generation: 7
  initiator: hans
  trace:
  - kind: XDatabase
    name: db
    generation: 12
    field: spec.size
  - kind: RDSInstance
    name: db-rds
    generation: 7
    field: delete
`

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allowances, -want, +got:\n%s", diff)
	}

	if got := resource.Strings(out.Desired.Object, "spec", "managementPolicies"); !cmp.Equal(got, []string{"Observe", "LateInitialize"}) {
		t.Errorf("managementPolicies: %v", got)
	}

	// 2. Its gate is open: it goes.
	open := edit(t, observedRDS, "[Observe, LateInitialize]", "[Observe, Delete]")
	if out := composition.Decide(request(t, xr, open, "")); out.Kept || out.Desired != nil || out.Pending == "" {
		t.Errorf("second run: %+v", out)
	}

	// A gate that is open is no reason to delete what nobody asked for.
	out = composition.Decide(request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), open, ""))
	if !out.Kept || out.Desired == nil || len(out.Held) != 1 || out.Held[0].Field != "delete" {
		t.Errorf("unasked: %+v", out)
	}

	if strings.Contains(resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances), "Delete") {
		t.Error("what is not to be deleted carries the allowance to")
	}

	// The Composition wants it again: what was granted is taken back.
	granted := edit(t, open, "kausality.io/management-policies:", "kausality.io/allowances: |\n      - {relation: External, mutations: [Delete], generation: 7, initiator: hans, trace: [{kind: RDSInstance, name: db-rds, generation: 7, field: delete}]}\n    kausality.io/management-policies:")
	if out := composition.Decide(request(t, xr, granted, desiredRDS)); resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances) != "[]\n" {
		t.Errorf("called off: %v", out.Desired.GetAnnotations())
	}

	// What was to be orphaned goes at once, and so does what is no managed resource.
	for _, observed := range []string{
		edit(t, observedRDS, "['*']\\n", "[Observe, Create, Update]\\n"),
		"{apiVersion: v1, kind: RDSInstance, metadata: {name: a}, spec: {}}",
	} {
		if out := composition.Decide(request(t, xr, observed, "")); out.Desired != nil || len(out.Held) > 0 {
			t.Errorf("without a gate: %+v", out)
		}
	}
}

func TestANewResourceIsMadeWithItsInitialSetOrLeftOut(t *testing.T) {
	fresh := "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db-x1, namespace: prod, labels: {crossplane.io/composite: db}, generation: 1}, spec: {size: small}}"

	cases := map[string]struct {
		reason, xr, desired string
		policies            []string
		held                bool
	}{
		"First":   {reason: "While its XR is built up.", xr: fresh, desired: desiredRDS, policies: []string{"Observe", "LateInitialize", "Create", "Update"}},
		"Later":   {reason: "Asked for later.", xr: allowing("create", "Create"), desired: desiredRDS, policies: []string{"Observe", "LateInitialize", "Create"}},
		"Unasked": {reason: "Not asked for.", xr: edit(t, steadyXR, "ALLOWANCES", "[]"), desired: desiredRDS, held: true},
		"Narrow":  {reason: "Never wider than the Composition asks.", xr: fresh, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe], "), policies: []string{"Observe"}},
		"Paused":  {reason: "A paused one is paused.", xr: fresh, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [], "), policies: []string{}},
		"Plain":   {reason: "What is no managed resource has no gate.", xr: fresh, desired: "{apiVersion: v1, kind: ConfigMap, data: {a: b}}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := composition.Decide(request(t, tc.xr, "", tc.desired))
			if (out.Desired == nil) != tc.held || (len(out.Held) > 0) != tc.held {
				t.Fatalf("%s\nDecide: %+v", tc.reason, out)
			}

			if tc.held {
				return
			}

			if diff := cmp.Diff(tc.policies, resource.Strings(out.Desired.Object, "spec", "managementPolicies")); diff != "" {
				t.Errorf("%s\nmanagementPolicies, -want, +got:\n%s", tc.reason, diff)
			}

			if out.Desired.GetGenerateName() != "" || out.Desired.GetNamespace() != "" {
				t.Errorf("%s\nname and namespace are Crossplane's to give: %v", tc.reason, out.Desired)
			}

			if tc.xr == fresh && !strings.Contains(resource.Annotation(out.Desired, v1alpha1.AnnotationTrace), "name: db-\n") {
				t.Errorf("%s\ntrace without Crossplane's name prefix:\n%s", tc.reason, resource.Annotation(out.Desired, v1alpha1.AnnotationTrace))
			}
		})
	}
}

func TestAnXRIsPendingUntilWhatItComposesHasCaughtUp(t *testing.T) {
	nested := func(status string) string {
		return "{apiVersion: example.org/v1alpha1, kind: XNetwork, metadata: {name: net, generation: 3}, spec: {a: b}, status: {" + status + "}}"
	}

	cases := map[string]struct {
		reason, observed string
		want             string
	}{
		"Managed":      {"A managed resource with a closed gate.", observedRDS, ""},
		"Open":         {"One with an open gate.", edit(t, observedRDS, "state: Closed", "state: Open"), "RDSInstance db-rds is being changed"},
		"Nested":       {"Another XR that has seen its generation.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 3}]"), ""},
		"NestedBehind": {"One that has not.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 2}]"), "XNetwork net is being changed"},
		"NestedBusy":   {"One whose own function is at it.", nested("conditions: [{type: Synced, status: 'True', observedGeneration: 3}, {type: Kausality, status: 'True', message: 'generation 3: in progress: x'}]"), "XNetwork net is being changed"},
		"NestedDone":   {"One whose own function is done.", nested("conditions: [{type: Kausality, status: 'True', message: 'generation 3: settled'}]"), ""},
		"Plain":        {"A kind that reports nothing.", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := object(t, tc.observed)
			desired := map[string]any{"apiVersion": observed.GetAPIVersion(), "kind": observed.GetKind()}

			if tc.observed != "" && observed.GetKind() == "RDSInstance" {
				desired = object(t, desiredRDS).Object
			}

			req := request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), tc.observed, "")
			req.Desired = &unstructured.Unstructured{Object: desired}

			if out := composition.Decide(req); out.Pending != tc.want || len(out.Held) > 0 {
				t.Errorf("%s\npending %q, held %v; want %q", tc.reason, out.Pending, out.Held, tc.want)
			}
		})
	}
}

func TestAResourceOfWhichNothingCanBeToldStaysAsItIs(t *testing.T) {
	broken := edit(t, observedRDS, `"f:metadata":`, `"k:{":`)

	for _, desired := range []string{desiredRDS, ""} {
		out := composition.Decide(request(t, allowing("spec", "Update"), broken, desired))
		if !out.Kept || len(out.Held) != 1 || len(out.Problems) != 1 || out.Held[0].Field != "metadata.managedFields" {
			t.Errorf("Decide: %+v", out)
		}

		if got := resource.Strings(out.Desired.Object, "spec", "managementPolicies"); len(got) != 2 {
			t.Errorf("managementPolicies: %v", got)
		}
	}
}

func TestAnXRSaysHowItIsDoing(t *testing.T) {
	xr := object(t, "{kind: X, metadata: {name: db, generation: 3, annotations: {kausality.io/initialized: 'true'}}}")
	held := func(n int) []composition.Held {
		out := make([]composition.Held, n)
		for i := range out {
			out[i] = composition.Held{Resource: "A a", HeldChange: v1alpha1.HeldChange{Field: "f", From: "1", Reason: "why"}}
		}

		return out
	}

	cases := map[string]struct {
		held     []composition.Held
		pending  []string
		problems []string
		want     composition.Status
	}{
		"Settled":  {nil, nil, nil, composition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: settled"}},
		"Progress": {nil, []string{"a", "b"}, nil, composition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: in progress: a; b"}},
		"Held":     {held(1), nil, nil, composition.Status{Reason: "Held", Message: "generation 3: settled; 1 held: A a: f stays 1 (asked: (unset)): why"}},
		"Problem":  {nil, nil, []string{"p", "q"}, composition.Status{Allowed: true, Reason: "Allowed", Message: "generation 3: settled; 2 to mend: p; q"}},
		"Many":     {held(7), nil, nil, composition.Status{Reason: "Held", Message: "generation 3: settled; 7 held: " + strings.Repeat("A a: f stays 1 (asked: (unset)): why; ", 5) + "and 2 more"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, composition.Summarize(xr, false, tc.held, tc.pending, tc.problems)); diff != "" {
				t.Errorf("Summarize, -want, +got:\n%s", diff)
			}
		})
	}

	young := object(t, "{kind: X, metadata: {name: db, generation: 1}}")
	for want, got := range map[string]composition.Status{
		"generation 1: initializing: a":                     composition.Summarize(young, true, nil, []string{"a"}, nil),
		"generation 1: initializing: X db is not ready yet": composition.Summarize(young, false, nil, nil, nil),
		"generation 1: settled":                             composition.Summarize(young, true, nil, nil, nil),
	} {
		if got.Message != want {
			t.Errorf("Summarize of a new XR: %q, want %q", got.Message, want)
		}
	}

	for other, same := range map[string]bool{
		"generation 4: in progress: x; 1 held: a":           true,
		"generation 3: settled; 1 held: b":                  false,
		"generation 3: settled; 1 held: a; 1 to mend: p\nq": false,
		"generation 3: settled; 1 to mend: a":               false,
		"generation 3: settled":                             false,
	} {
		if got := composition.SameNews("generation 3: settled; 1 held: a", other); got != same {
			t.Errorf("SameNews as %q: %v", other, got)
		}
	}

	bound := object(t, "{kind: X, metadata: {name: db, annotations: {kausality.io/held: '[{field: spec.size, from: a, to: b, reason: why}]'}}}")
	if got := composition.HeldOn(bound); len(got) != 1 || got[0].String() != "X db: spec.size stays a (asked: b): why" {
		t.Errorf("HeldOn: %v", got)
	}

	if got := composition.HeldOn(object(t, "{metadata: {annotations: {kausality.io/held: '{'}}}")); got != nil {
		t.Errorf("HeldOn of what cannot be read: %v", got)
	}
}

func TestTheRequestIsLeftAlone(t *testing.T) {
	annotated := edit(t, desiredRDS, "{labels: {team: a}}", "{labels: {team: a}, annotations: {a: b}}")
	larger := edit(t, annotated, "instanceClass: small", "instanceClass: large", "spec: {", "spec: {managementPolicies: ['*'], ")

	for name, tc := range map[string]struct{ xr, observed, desired string }{
		"Allowed": {allowing("spec.forProvider", "Update"), observedRDS, larger},
		"Held":    {allowing("spec.other", "Update"), observedRDS, larger},
		"Created": {allowing("create", "Create"), "", larger},
		"Removed": {allowing("delete", "Delete"), observedRDS, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, tc.xr, tc.observed, tc.desired)
			before := []any{req.XR.DeepCopy(), req.Observed.DeepCopy(), req.Desired.DeepCopy()}

			composition.Decide(req)

			if diff := cmp.Diff(before, []any{req.XR, req.Observed, req.Desired}); diff != "" {
				t.Errorf("-before, +after:\n%s", diff)
			}
		})
	}
}

func TestAPipelineThatReportsIsNotSettled(t *testing.T) {
	xr := object(t, "{kind: Chain, metadata: {name: long}, status: {size: small, ports: [80], at: {zone: a}, conditions: [{type: Ready, status: 'True'}]}}")

	for desired, want := range map[string]string{
		"{}":                                "",
		"{status: {size: small}}":           "",
		"{status: {size: large}}":           "Chain long is about to report a new status.size",
		"{status: {at: {zone: b}}}":         "Chain long is about to report a new status.at.zone",
		"{status: {new: {zone: b}}}":        "Chain long is about to report a new status.new.zone",
		"{status: {ports: [80.0]}}":         "",
		"{status: {ports: [80, 443]}}":      "Chain long is about to report a new status.ports",
		"{status: {size: null, at: {}}}":    "Chain long is about to report a new status.size",
		"{status: {none: null}}":            "",
		"{status: {conditions: [a]}}":       "",
		"{spec: {size: large}, status: {}}": "",
	} {
		if got := composition.Reporting(xr, object(t, desired)); got != want {
			t.Errorf("Reporting %s: %q, want %q", desired, got, want)
		}
	}
}

func TestQuantitiesOfBuiltInKindsAreComparedByValue(t *testing.T) {
	const observed = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  managedFields:
  - manager: apiextensions.crossplane.io/composed/0123
    operation: Apply
    fieldsV1:
      "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:name": {}, "f:env": {}, "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}}}}}}}
spec: {template: {spec: {containers: [{name: side}, {name: app, env: [{name: N, value: "1"}], resources: {limits: {cpu: "1", memory: 1Gi}}}]}}}
`

	for name, tc := range map[string]struct {
		limits, env string
		want        []string
	}{
		"Same":   {"{cpu: 1000m, memory: 1024Mi}", `"1"`, nil},
		"Number": {"{cpu: 1, memory: 1073741824}", `"1"`, nil},
		"Less":   {"{cpu: 900m, memory: 1Gi}", `"1"`, []string{"spec.template.spec.containers[1].resources.limits.cpu"}},
		"Text":   {"{cpu: 1000m, memory: 1Gi}", `"1.0"`, []string{"spec.template.spec.containers[1].env[0].value"}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: app, env: [{name: N, value: " + tc.env + "}], resources: {limits: " + tc.limits + "}}]}}}}"

			got := fields(composition.Decide(request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), observed, desired)).Held)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held, -want, +got:\n%s", diff)
			}
		})
	}

	const custom = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}, spec: {limits: {cpu: %s}}}"

	got := fields(composition.Decide(request(t, edit(t, steadyXR, "ALLOWANCES", "[]"),
		edit(t, custom, "%s", `"1"`), edit(t, custom, "%s", "1000m"))).Held)
	if diff := cmp.Diff([]string{"spec.limits.cpu"}, got); diff != "" {
		t.Errorf("a kind whose fields nobody rewrites: held, -want, +got:\n%s", diff)
	}
}
