// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/fn"
)

const steadyXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      - kind: Object
        mutation: spec.forProvider.size
        generation: 12
        id: "12.0"
        initiator: hans
        source:
          type: Policy
          field: 
        trace: [{kind: XDatabase, name: db, generation: 12, field: spec.size}]
      - relation: External
        mutations: [Update]
        generation: 12
        id: "12.0"
        initiator: hans
        source:
          type: Policy
          field: 
        trace: [{kind: XDatabase, name: db, generation: 12, field: spec.size}]
spec: {size: large}
status:
  conditions: [{type: Ready, status: "True", observedGeneration: 12}]
`

const observedObject = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  name: db-obj
  generation: 7
  annotations:
    kausality.io/allowances: |
      []
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/gate: "{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}"
  managedFields:
  - manager: apiextensions.crossplane.io/composed/6aa923b7fbecfc9cf7148036e209680c9de7e17acbac426e7ebda49398cb9de2
    operation: Apply
    fieldsV1: {"f:spec": {"f:forProvider": {"f:size": {}, "f:engine": {}}, "f:managementPolicies": {}}}
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {size: small, engine: postgres, zone: defaulted}
status:
  conditions:
  - {type: Synced, status: "True", observedGeneration: 7}
  - {type: Ready, status: "True"}
`

const desiredObject = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
spec:
  forProvider: {size: SIZE, engine: ENGINE}
`

// resourceOf decodes YAML into a resource; the empty text is none.
func resourceOf(t *testing.T, text string) *fnv1.Resource {
	t.Helper()

	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}

	st, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}

	return &fnv1.Resource{Resource: st}
}

// told is the message of the condition, which may be cut, and each held change with its whole reason, line by line.
func told(t *testing.T, rsp *fnv1.RunFunctionResponse) string {
	t.Helper()

	state := stateIn(t, rsp)
	list := slices.Concat(state.Changes, state.Passed)
	lines := append(make([]string, 0, len(list)+1), rsp.GetConditions()[0].GetMessage())

	for _, c := range list {
		of := c.Ref.Kind + " " + c.Ref.Name
		if c.Field == v1alpha1.MutationCreate {
			of = c.Ref.Kind + " of composed resource " + c.ComposedResource
		}

		lines = append(lines, condition.Held{Change: c, Resource: of}.String())
	}

	return strings.Join(lines, "\n")
}

// withCommand is a message with the command that lists what it says is held.
func withCommand(message string) string {
	if !strings.Contains(strings.ToLower(message), "held") || strings.Contains(message, "kubectl") {
		return message
	}

	return message + ". kubectl kausality pending xdatabase.example.org/db"
}

// resources is one composed resource called database, or none.
func resources(t *testing.T, text string) map[string]*fnv1.Resource {
	t.Helper()

	if text == "" {
		return nil
	}

	return map[string]*fnv1.Resource{"database": resourceOf(t, text)}
}

func call(t *testing.T, xr, observed, desired, input string) *fnv1.RunFunctionRequest {
	t.Helper()

	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "t1", Capabilities: []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES, fnv1.Capability_CAPABILITY_CONDITIONS,
		}},
		RequiredResources: map[string]*fnv1.Resources{
			"kausality.io/allowancepolicies": {}, "kausality.io/upgradeallowances": {}, "kausality.io/enforcements": {},
		},
		Observed: &fnv1.State{Composite: resourceOf(t, xr), Resources: resources(t, observed)},
		Desired:  &fnv1.State{Resources: resources(t, desired)},
	}
	if input != "" {
		req.Input = resourceOf(t, input).GetResource()
	}

	return req
}

func run(t *testing.T, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	t.Helper()

	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

	rsp, err := fn.New(logging.NewNopLogger(), fn.WithClock(now)).RunFunction(t.Context(), req)
	if err != nil {
		t.Fatalf("RunFunction: %v", err)
	}

	return rsp
}

func sized(size, engine string) string {
	return strings.NewReplacer("SIZE", size, "ENGINE", engine).Replace(desiredObject)
}

func TestTheFunctionLetsOnlyAskedForChangesThrough(t *testing.T) {
	const (
		stamped = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  annotations:
    kausality.io/allowances: |
      - relation: External
        mutations:
        - Update
        generation: 8
        id: "8.0"
        initiator: hans
        source:
          type: Policy
          field: spec.forProvider.size
        trace:
        - kind: XDatabase
          name: db
          generation: 12
          field: spec.size
        - kind: Object
          name: db-obj
          generation: 8
          field: spec.forProvider.size
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/trace: |
      - field: spec.forProvider.size
        generation: 8
        initiator: hans
        trace:
        - kind: XDatabase
          name: db
          generation: 12
          field: spec.size
        - kind: Object
          name: db-obj
          generation: 8
          field: spec.forProvider.size
spec:
  managementPolicies: [Observe, LateInitialize]
  forProvider: {size: large, engine: postgres}
`
		unchanged = `
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
		created = `
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata:
  annotations:
    kausality.io/allowances: |
      - relation: External
        mutations:
        - Create
        - Update
        generation: 1
        id: "1.0"
        initiator: system:serviceaccount:crossplane-system:crossplane
        source:
          type: Creation
          field: create
        trace:
        - kind: XDatabase
          name: db
          generation: 1
          field: create
        - kind: Object
          name: db-
          generation: 1
          field: create
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/trace: |
      - field: create
        generation: 1
        initiator: system:serviceaccount:crossplane-system:crossplane
        trace:
        - kind: XDatabase
          name: db
          generation: 1
          field: create
        - kind: Object
          name: db-
          generation: 1
          field: create
spec:
  managementPolicies: [Observe, LateInitialize, Create]
  forProvider: {size: small, engine: postgres}
`
		fresh = "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db, generation: 1}, spec: {size: small, resourceRefs: []}}"
	)

	cases := map[string]struct {
		reason                string
		xr, observed, desired string
		input                 string
		want                  string
		ready                 bool
		condition             string
	}{
		"Allowed": {
			reason: "An allowed change passes with its stamps, and the gate's field is stamped as observed.",
			xr:     steadyXR, observed: observedObject, desired: sized("large", "postgres"),
			want: stamped, condition: "generation 12: in progress",
		},
		"Unchanged": {
			reason: "Nothing to do is settled.",
			xr:     steadyXR, observed: observedObject, desired: sized("small", "postgres"),
			want: unchanged, condition: "generation 12: settled",
		},
		"WrongPolicies": {
			reason: "A step before us that opens the gate says what the Composition asks for, and opens nothing.",
			xr:     steadyXR, observed: observedObject,
			desired: strings.Replace(sized("small", "postgres"), "spec:", "spec:\n  managementPolicies: ['*']", 1),
			want:    unchanged, condition: "generation 12: settled",
		},
		"Created": {
			reason: "A new resource of an initializing XR starts with Create.",
			xr:     fresh, desired: sized("small", "postgres"),
			want: created, condition: "generation 1: initializing",
		},
		"HeldDelete": {
			reason: "A resource nobody asked to delete stays desired, as Crossplane applied it.",
			xr:     steadyXR, observed: observedObject, want: unchanged, ready: true,
			condition: "generation 12: settled, 1 change held: deletion of Object db-obj; no policy about XDatabase allows it",
		},
		"Audit": {
			reason: "Audit reports and lets pass.",
			xr:     steadyXR, observed: observedObject, desired: sized("small", "mysql"), input: "mode: Audit",
			want:      strings.NewReplacer("postgres", "mysql", `["*"]}`, `["*"],"mode":"Audit"}`).Replace(unchanged),
			condition: "generation 12: in progress, 1 change would be held. kubectl kausality audit",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, tc.xr, tc.observed, tc.desired, tc.input)
			rsp := run(t, req)

			want, got := resources(t, tc.want), rsp.GetDesired().GetResources()
			if tc.ready {
				want["database"].Ready = fnv1.Ready_READY_TRUE
			}

			if diff := cmp.Diff(want, withoutWishes(t, got), protocmp.Transform()); diff != "" && (tc.want != "" || len(got) > 0) {
				t.Errorf("%s\ndesired, -want, +got:\n%s", tc.reason, diff)
			}

			if rsp.GetConditions()[0].GetMessage() != withCommand(tc.condition) {
				t.Errorf("%s\ncondition: %v, want %q", tc.reason, rsp.GetConditions(), tc.condition)
			}

			if again := run(t, req); !proto.Equal(rsp, again) {
				t.Errorf("%s\nthe same request gave another response:\n%s", tc.reason, cmp.Diff(rsp, again, protocmp.Transform()))
			}

			if diff := cmp.Diff(requirements(map[string]string{}), rsp.GetRequirements(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nrequirements, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBadInputIsNamed(t *testing.T) {
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   string
	}{
		"UnknownField": {
			reason: "A mistyped setting must not be ignored.",
			req:    call(t, steadyXR, "", "", "modus: Hold"), want: `unknown field "modus"`,
		},
		"UnknownMode": {
			reason: "Nor a mistyped value.",
			req:    call(t, steadyXR, "", "", "mode: Hodl"), want: `mode "Hodl" is not one of`,
		},
		"NoKind": {
			reason: "A composed resource without kind cannot be judged.",
			req:    call(t, steadyXR, "", "{spec: {a: b}}", ""), want: `desired composed resource "database"`,
		},
		"NoXR": {
			reason: "Nor can an empty request.",
			req:    &fnv1.RunFunctionRequest{}, want: "cannot read the observed composite resource",
		},
		"Fatal": {
			reason: "Mode Fatal fails the pipeline, naming the change.",
			req:    call(t, steadyXR, observedObject, sized("small", "mysql"), "mode: Fatal"), want: "engine of Object db-obj",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, tc.req)
			if n := len(rsp.GetResults()); n != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
				t.Fatalf("%s\nresults: %v", tc.reason, rsp.GetResults())
			}

			if got := rsp.GetResults()[0].GetMessage(); !strings.Contains(got, tc.want) {
				t.Errorf("%s\nresult %q does not say %q", tc.reason, got, tc.want)
			}
		})
	}
}

// withoutWishes are resources without the records of their wishes, which hashes
// make unreadable; each that is wished has one.
func withoutWishes(t *testing.T, resources map[string]*fnv1.Resource) map[string]*fnv1.Resource {
	t.Helper()

	out := make(map[string]*fnv1.Resource, len(resources))

	for name, r := range resources {
		r, _ = proto.Clone(r).(*fnv1.Resource)
		out[name] = r

		metadata := r.GetResource().GetFields()["metadata"].GetStructValue()
		annotations := metadata.GetFields()["annotations"].GetStructValue()
		delete(annotations.GetFields(), "kausality.io/wish")

		if len(annotations.GetFields()) == 0 {
			delete(metadata.GetFields(), "annotations")
		}

		if len(metadata.GetFields()) == 0 {
			delete(r.GetResource().GetFields(), "metadata")
		}
	}

	return out
}
