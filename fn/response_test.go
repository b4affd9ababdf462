// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// requirements are what every response asks for that is about an XDatabase and
// its Objects.
func requirements(labels map[string]string) *fnv1.Requirements {
	selector := func(kind, key, value string) *fnv1.ResourceSelector {
		all := maps.Clone(labels)
		all[key] = value

		return &fnv1.ResourceSelector{
			ApiVersion: "kausality.io/v1alpha1", Kind: kind,
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: all}},
		}
	}

	return &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		"kausality.io/enforcements": {
			ApiVersion: "kausality.io/v1alpha1", Kind: "Enforcement",
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}},
		},
		"kausality.io/allowancepolicies/XDatabase": selector("AllowancePolicy", "kind.kausality.io/XDatabase", ""),
		"kausality.io/allowancepolicies/Object":    selector("AllowancePolicy", "kind.kausality.io/Object", ""),
		"kausality.io/upgradeallowances/crossplane-system.crossplane": selector(
			"UpgradeAllowance", "kausality.io/service-account", "crossplane-system.crossplane"),
	}}
}

func TestAWholeResponse(t *testing.T) {
	const held = `engine of Object db-obj (postgres → mysql); no policy about XDatabase allows it`

	unchanged := `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  annotations:
    kausality.io/allowances: |
      []
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {size: small, engine: postgres}
`
	message := withCommand("generation 12: settled, 1 change held: " + held)
	known := reported(run(t, call(t, steadyXR, observedObject, sized("small", "mysql"), "")).GetConditions()...)

	cases := map[string]struct {
		reason, xr string
		results    []*fnv1.Result
	}{
		"New": {
			reason: "What is held is an event for XR and Claim.",
			xr:     steadyXR,
			results: []*fnv1.Result{{
				Severity: fnv1.Severity_SEVERITY_WARNING, Message: withCommand("Held: " + held),
				Target: fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum(), Reason: new("KausalityHeld"),
			}},
		},
		"Known": {reason: "But only when it is new.", xr: known},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, tc.xr, observedObject, sized("small", "mysql"), "policySelector: {team: a}")
			req.Desired.Composite = &fnv1.Resource{Ready: fnv1.Ready_READY_TRUE}
			req.Desired.Resources["database"].Ready = fnv1.Ready_READY_FALSE
			req.Desired.Resources["database"].ConnectionDetails = map[string][]byte{"a": []byte("b")}
			req.Context = &structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewStringValue("v")}}

			database := resourceOf(t, unchanged)
			database.Ready, database.ConnectionDetails = fnv1.Ready_READY_FALSE, map[string][]byte{"a": []byte("b")}

			want := &fnv1.RunFunctionResponse{
				Meta:    &fnv1.ResponseMeta{Tag: "t1", Ttl: durationpb.New(60_000_000_000)},
				Context: req.GetContext(),
				Desired: &fnv1.State{Composite: req.GetDesired().GetComposite(), Resources: map[string]*fnv1.Resource{"database": database}},
				Conditions: []*fnv1.Condition{{
					Type: "Kausality", Status: fnv1.Status_STATUS_CONDITION_FALSE, Reason: "Held", Message: new(message),
					Target: fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum(),
				}},
				Results:      tc.results,
				Requirements: requirements(map[string]string{"team": "a"}),
			}

			before := proto.Clone(req)
			first := run(t, req)

			compared, _ := proto.Clone(first).(*fnv1.RunFunctionResponse)
			compared.Desired.Resources = withoutWishes(t, compared.GetDesired().GetResources())
			compared.Conditions = compared.GetConditions()[:1] // The list for the manager is compared elsewhere.

			if diff := cmp.Diff(want, compared, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRunFunction, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, proto.Message(req), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRunFunction changed its request:\n%s", tc.reason, diff)
			}

			opts := proto.MarshalOptions{Deterministic: true}
			a, errA := opts.Marshal(first)
			b, errB := opts.Marshal(run(t, req))

			if errA != nil || errB != nil || !cmp.Equal(a, b) {
				t.Errorf("%s\nthe same request gave other bytes: %v, %v", tc.reason, errA, errB)
			}
		})
	}
}

func TestPoliciesAndWindowsAreTakenFromTheRequest(t *testing.T) {
	const (
		window = `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: upgrade, generation: 3}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2025-12-31T00:00:00Z"
  validUntil: "2026-01-02T00:00:00Z"
  activateWhen: {controllerRef: {kind: Deployment, name: a, namespace: b, minGeneration: 15}}
  allow:
  - {kind: Object, relation: Child, mutations: [spec.forProvider]}
  - {relation: External, mutations: [Update]}
status: {active: true, uses: 4, observedGeneration: 3}
`
		key = "kausality.io/upgradeallowances"
	)

	list := func(texts ...string) map[string]*fnv1.Resources {
		items := make([]*fnv1.Resource, len(texts))
		for i, text := range texts {
			items[i] = resourceOf(t, text)
		}

		return map[string]*fnv1.Resources{key: {Items: items}}
	}

	cases := map[string]struct {
		reason          string
		required, extra map[string]*fnv1.Resources
		engine          string
		warning         string
	}{
		"Required": {reason: "From the present field.", required: list(window), engine: "mysql"},
		"Extra":    {reason: "From the one older versions of Crossplane know.", extra: list(window), engine: "mysql"},
		"Both":     {reason: "The present field counts.", required: list(), extra: list(window), engine: "postgres"},
		"Beside": {
			reason:   "What the pipeline's step asks for hides nothing of what the function did.",
			required: map[string]*fnv1.Resources{"someones": {}}, extra: list(window), engine: "mysql",
		},
		"None":    {reason: "Nothing is allowed before they were sent.", engine: "postgres"},
		"Garbage": {reason: "One that cannot be read is named, and the others count.", required: list("{metadata: {name: odd}, spec: {allow: 3}}", window), engine: "mysql", warning: `cannot read UpgradeAllowance "odd"`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
			req.RequiredResources, req.ExtraResources = tc.required, tc.extra //nolint:staticcheck // What older versions of Crossplane send.
			rsp := run(t, req)

			got := rsp.GetDesired().GetResources()["database"].GetResource().AsMap()
			if engine := resource.String(got, "spec", "forProvider", "engine"); engine != tc.engine {
				t.Errorf("%s\nengine is %v, want %s: %v", tc.reason, engine, tc.engine, rsp.GetConditions())
			}

			if tc.warning != "" && (len(rsp.GetResults()) != 1 || !strings.Contains(rsp.GetResults()[0].GetMessage(), tc.warning)) {
				t.Errorf("%s\nresults: %v", tc.reason, rsp.GetResults())
			}
		})
	}
}

func TestADeletionTakesTwoRuns(t *testing.T) {
	xr := strings.Replace(strings.Replace(steadyXR, "mutation: spec.forProvider.size", "mutation: delete", 1), "[Update]", "[Delete]", 1)

	rsp := run(t, call(t, xr, observedObject, "", ""))
	kept := rsp.GetDesired().GetResources()["database"]

	if kept.GetReady() != fnv1.Ready_READY_TRUE || !strings.Contains(kept.String(), "Delete") {
		t.Errorf("first run: %v", kept)
	}

	if got := rsp.GetConditions()[0].GetMessage(); got != "generation 12: in progress" {
		t.Errorf("first run: %q", got)
	}

	rsp = run(t, call(t, xr, strings.Replace(observedObject, "[Observe, LateInitialize]", "[Observe, Delete]", 1), "", ""))
	if got := rsp.GetDesired().GetResources(); len(got) != 0 {
		t.Errorf("second run: %v", got)
	}
}

func TestWhatTheClaimsXRHoldsIsReportedToo(t *testing.T) {
	xr := strings.Replace(steadyXR, "  annotations:\n", "  annotations:\n    kausality.io/held: '[{field: spec.size, from: large, to: huge, missing: why}]'\n", 1)

	rsp := run(t, call(t, xr, observedObject, sized("small", "postgres"), ""))
	if got := rsp.GetConditions()[0].GetMessage(); got != "generation 12: settled, 1 change held: spec.size of XDatabase db (large → huge); why. kubectl kausality trace xdatabase.example.org/db" {
		t.Errorf("condition: %q", got)
	}
}

// garble replaces a random part of decoded JSON by something that has no
// business there.
func garble(r *rand.Rand, v any) any {
	junk := []any{nil, "x", 1.5, -3.0, true, []any{}, []any{nil, "a", 1.0}, map[string]any{}, map[string]any{"name": 1.0}, strings.Repeat("[", 50), 1e300}

	if r.IntN(8) == 0 {
		return junk[r.IntN(len(junk))]
	}

	switch t := v.(type) {
	case map[string]any:
		for k, e := range t {
			if r.IntN(3) == 0 {
				t[k] = garble(r, e)
			}
		}
	case []any:
		for i, e := range t {
			t[i] = garble(r, e)
		}
	case string:
		if len(t) > 1 && r.IntN(2) == 0 {
			return t[:r.IntN(len(t))]
		}
	}

	return v
}

func TestGarbageIsAnsweredWithoutAPanic(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		req := call(t, steadyXR, observedObject, sized("large", "mysql"), "")

		for _, res := range []*fnv1.Resource{req.GetObserved().GetComposite(), req.GetObserved().GetResources()["database"], req.GetDesired().GetResources()["database"]} {
			m, ok := garble(r, res.GetResource().AsMap()).(map[string]any)
			if !ok {
				continue
			}

			st, err := structpb.NewStruct(m)
			if err != nil {
				t.Fatal(err)
			}

			res.Resource = st
		}

		if r.IntN(4) == 0 {
			req.Desired.Resources = nil
		}

		for _, res := range run(t, req).GetResults() {
			if strings.Contains(res.GetMessage(), "internal error") {
				t.Fatalf("seed %d: %s\n%v", seed, res.GetMessage(), req)
			}
		}
	}

	run(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{}}, Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"a": nil}}})
}

func TestEachResourceGetsItsOwnGrant(t *testing.T) {
	xr := `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      - {kind: Object, mutation: spec.forProvider.size, generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}
      - {relation: External, mutations: [Update], generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}
      - {apiGroup: rds.example.org, kind: Instance, mutation: spec.forProvider.engine, generation: 11, initiator: anna, policy: recreate, id: '11.0', source: {type: Policy, name: recreate}}
      - {relation: External, mutations: [Delete, Create], generation: 11, initiator: anna, policy: recreate, id: '11.0', source: {type: Policy, name: recreate}}
`
	instance := strings.NewReplacer("kubernetes.crossplane.io/v1alpha2", "rds.example.org/v1", "kind: Object", "kind: Instance", "db-obj", "db-rds")

	req := call(t, xr, observedObject, sized("large", "mysql"), "")
	req.Observed.Resources["instance"] = resourceOf(t, instance.Replace(observedObject))
	req.Desired.Resources["instance"] = resourceOf(t, instance.Replace(sized("large", "mysql")))
	req.RequiredResources["kausality.io/allowancepolicies"].Items = []*fnv1.Resource{resourceOf(t, `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: recreate}
spec:
  match: {kind: XDatabase, fields: [spec.engine]}
  allow: [{apiGroup: rds.example.org, kind: Instance, mutations: [spec.forProvider.engine]}, {relation: External, mutations: [Delete, Create]}]`)}

	rsp := run(t, req)

	for name, want := range map[string]struct{ size, engine, verbs string }{
		"database": {"large", "postgres", "mutations:\n  - Update\n"},
		"instance": {"small", "mysql", "mutations:\n  - Delete\n  - Create\n"},
	} {
		u := &unstructured.Unstructured{Object: rsp.GetDesired().GetResources()[name].GetResource().AsMap()}

		size, engine := resource.String(u.Object, "spec", "forProvider", "size"), resource.String(u.Object, "spec", "forProvider", "engine")
		if size != want.size || engine != want.engine {
			t.Errorf("%s: size %q, engine %q, want %q and %q", name, size, engine, want.size, want.engine)
		}

		if got := resource.Annotation(u, "kausality.io/allowances"); strings.Count(got, "relation: External") != 1 || !strings.Contains(got, want.verbs) {
			t.Errorf("%s carries %s, want %q", name, got, want.verbs)
		}
	}

	if got := rsp.GetConditions()[0].GetMessage(); !strings.Contains(got, ", 2 changes held") {
		t.Errorf("condition %q", got)
	}
}

func TestAnXRIsBuiltUpUntilItIsReady(t *testing.T) {
	const young = "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db, generation: 1}}"

	const building, done = "generation 1: initializing", "generation 1: settled"

	for name, tc := range map[string]struct {
		xr        string
		composite fnv1.Ready
		resource  fnv1.Ready
		want      string
	}{
		"Nothing":   {xr: young, want: building},
		"Resource":  {xr: young, resource: fnv1.Ready_READY_TRUE, want: done},
		"Not":       {xr: young, resource: fnv1.Ready_READY_FALSE, want: building},
		"Overruled": {xr: young, composite: fnv1.Ready_READY_FALSE, resource: fnv1.Ready_READY_TRUE, want: building},
		"Composite": {xr: young, composite: fnv1.Ready_READY_TRUE, want: done},
		"Observed":  {xr: strings.Replace(young, "generation: 1}", "generation: 1}, status: {conditions: [{type: Ready, status: 'True'}, "+fixture.State(v1alpha1.PhaseInitializing, 1, 0)+"]}", 1), want: done},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, tc.xr, observedObject, sized("small", "postgres"), "")
			req.Desired.Composite = &fnv1.Resource{Ready: tc.composite}
			req.Desired.Resources["database"].Ready = tc.resource

			if got := run(t, req).GetConditions()[0].GetMessage(); got != tc.want {
				t.Errorf("condition %q, want %q", got, tc.want)
			}
		})
	}
}
