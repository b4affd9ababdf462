// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/fn"
)

const freshXApp = `
apiVersion: example.org/v1
kind: XApp
metadata: {name: app, uid: xr-uid, generation: 12}
spec: {size: large}
`

const steadyXApp = `
apiVersion: example.org/v1
kind: XApp
metadata: {name: app, uid: xr-uid, generation: 12, annotations: {kausality.io/initialized: '{"v":1}'}}
spec: {size: large}
status:
  conditions:
  - {type: Ready, status: "True", observedGeneration: 12}
  - {type: Kausality, status: "True", message: "generation 12: settled"}
  - {type: KausalityState, status: "True", message: '{"v":1,"progress":{"phase":"Settled","generation":12,"settled":{"generation":12}}}'}
`

// ofApp is the metadata of what Crossplane composes for the XApp.
const ofApp = `{name: d, namespace: default, generation: 1, resourceVersion: "7",
  ownerReferences: [{apiVersion: example.org/v1, kind: XApp, name: app, uid: xr-uid, controller: true}],
  managedFields: [{manager: MANAGER, operation: Apply, fieldsV1: FIELDS}]}`

// composed is a stored object, as Crossplane composed it.
func composed(t *testing.T, text, fields string) map[string]any {
	t.Helper()

	xr := &unstructured.Unstructured{Object: fromYAML(t, freshXApp)}

	return fromYAML(t, strings.NewReplacer(
		"META", ofApp, "MANAGER", managedfields.ManagerOf(xr), "FIELDS", fields).Replace(strings.Replace(text, "META", ofApp, 1)))
}

const (
	wishedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: default}
spec:
  paused: false
  template: {spec: {hostNetwork: false, containers: [{name: c, image: nginx, args: [], env: [{name: A, value: ""}], ports: [{containerPort: 80}]}]}}
`
	storedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: META
spec:
  template: {spec: {containers: [{name: c, image: nginx, env: [{name: A}], ports: [{containerPort: 80, protocol: TCP}]}]}}
status: {observedGeneration: 1}
`
	fieldsOfDeployment = `{"f:spec": {"f:paused": {}, "f:template": {"f:spec": {"f:hostNetwork": {}, "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
      "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}}}}}}}`

	wishedService = `
apiVersion: v1
kind: Service
metadata: {name: d, namespace: default}
spec: {ports: [{port: 80, targetPort: 8080}]}
`
	storedService = `
apiVersion: v1
kind: Service
metadata: META
spec: {clusterIP: 10.0.0.1, ports: [{port: 80, protocol: TCP, targetPort: 8080}]}
`
	fieldsOfService = `{"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}}}}}`

	wishedSecret = `
apiVersion: v1
kind: Secret
metadata: {name: d, namespace: default}
stringData: {user: admin}
data: {other: b3RoZXI=}
`
	storedSecret = `
apiVersion: v1
kind: Secret
metadata: META
type: Opaque
data: {user: YWRtaW4=, other: b3RoZXI=}
`
	fieldsOfSecret = `{"f:data": {"f:other": {}, "f:user": {}}}`
)

// app is an XApp, and what it composes, over several runs.
type app struct {
	t        *testing.T
	xr       map[string]any
	observed map[string]any
	wished   map[string]any
	status   map[string]any
	now      time.Time
}

func newApp(t *testing.T, xr, wished string, observed map[string]any) *app {
	t.Helper()

	a := &app{t: t, xr: fromYAML(t, xr), observed: observed, now: time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)}
	if wished != "" {
		a.wished = fromYAML(t, wished)
	}

	return a
}

// run runs the function, and stores what Crossplane would but for what is held
// or created.
func (a *app) run(input string) (*fnv1.RunFunctionResponse, string) {
	a.t.Helper()

	return a.respond(a.request(input))
}

// runWith runs it with a pipeline that wishes one more resource.
func (a *app) runWith(name string, wished map[string]any) (*fnv1.RunFunctionResponse, string) {
	a.t.Helper()

	req := a.request("")
	req.Desired.Resources[name] = toResource(a.t, wished)

	return a.respond(req)
}

// request is what Crossplane asks the function.
func (a *app) request(input string) *fnv1.RunFunctionRequest {
	a.t.Helper()

	req := call(a.t, freshXApp, "", "", input)
	req.Observed.Composite = toResource(a.t, a.xr)
	req.Desired.Composite = toResource(a.t, map[string]any{"status": a.status})

	if a.observed != nil {
		req.Observed.Resources = map[string]*fnv1.Resource{"d": toResource(a.t, a.observed)}
	}

	if a.wished != nil {
		req.Desired.Resources = map[string]*fnv1.Resource{"d": toResource(a.t, a.wished)}
		req.Desired.Resources["d"].Ready = fnv1.Ready_READY_TRUE
	}

	return req
}

func (a *app) respond(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, string) {
	a.t.Helper()

	rsp, err := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return a.now })).RunFunction(a.t.Context(), req)
	if err != nil {
		a.t.Fatal(err)
	}

	if len(rsp.GetConditions()) == 0 {
		return rsp, ""
	}

	a.conditions(rsp.GetConditions())

	if out := rsp.GetDesired().GetResources()["d"]; out != nil && a.observed != nil {
		a.annotate(out.GetResource())
	}

	return rsp, told(a.t, rsp)
}

// conditions are those that Crossplane sets in the end.
func (a *app) conditions(said []*fnv1.Condition) {
	status, _ := a.xr["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		a.xr["status"] = status
	}

	list := make([]any, 0, 1+len(said))
	list = append(list,
		map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(12), "lastTransitionTime": "2026-01-01T00:00:00Z"},
	)

	for _, c := range said {
		list = append(list, map[string]any{"type": c.GetType(), "status": "True", "message": c.GetMessage()})
	}

	status["conditions"] = list
}

func (a *app) annotate(out *structpb.Struct) {
	meta := resource.Map(a.observed, "metadata")

	have := maps.Clone(resource.Map(meta, "annotations"))
	if have == nil {
		have = map[string]any{}
	}

	maps.Copy(have, resource.Map(out.AsMap(), "metadata", "annotations"))
	meta["annotations"] = have
}

func (a *app) wants(prefix string) {
	a.t.Helper()

	if _, message := a.run(""); !strings.HasPrefix(message, prefix) {
		a.t.Errorf("condition: %q, want %q", message, prefix)
	}
}

func TestAnXRThatComposesOrdinaryKindsSettles(t *testing.T) {
	for name, tc := range map[string]struct{ wished, stored, fields string }{
		"Deployment": {wishedDeployment, storedDeployment, fieldsOfDeployment},
		"Service":    {wishedService, storedService, fieldsOfService},
		"Secret":     {wishedSecret, storedSecret, fieldsOfSecret},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, freshXApp, tc.wished, nil)

			rsp, message := a.run("")
			if !strings.HasPrefix(message, "generation 12: initializing") {
				t.Fatalf("condition: %q", message)
			}

			record := rsp.GetDesired().GetResources()["d"].GetResource()
			a.observed = composed(t, tc.stored, tc.fields)
			a.annotate(record)

			a.wants("generation 12: settled")

			before := resource.Map(a.observed, "metadata", "annotations")
			rsp, message = a.run("mode: Fatal")

			if message != "generation 12: settled" || len(rsp.GetResults()) > 0 {
				t.Errorf("the same wish: %q, %v", message, rsp.GetResults())
			}

			if diff := cmp.Diff(before, resource.Map(a.observed, "metadata", "annotations")); diff != "" {
				t.Errorf("it was stamped though nothing changed, -before, +after:\n%s", diff)
			}
		})
	}
}

func TestASecretIsAppliedAsItIsStored(t *testing.T) {
	a := newApp(t, steadyXApp, strings.Replace(wishedSecret, "b3RoZXI=", "bmV3", 1), composed(t, storedSecret, fieldsOfSecret))

	rsp, message := a.run("")
	if !strings.HasPrefix(message, "generation 12: settled, 1 change held: data.other of Secret d (") {
		t.Errorf("condition: %q", message)
	}

	got := rsp.GetDesired().GetResources()["d"].GetResource().AsMap()
	if diff := cmp.Diff(map[string]any{"user": "YWRtaW4=", "other": "b3RoZXI="}, got["data"]); diff != "" || got["stringData"] != nil {
		t.Errorf("data, -want, +got:\n%s\nstringData: %v", diff, got["stringData"])
	}

	if text := resource.String(got, "metadata", "annotations", "kausality.io/wish"); !strings.Contains(text, "leaves: \"\"\n") {
		t.Errorf("a Secret's wish is recorded: %v", got)
	}
}

func TestWhatIsHeldIsHeldOfTheVersionThatWasSeen(t *testing.T) {
	for name, wished := range map[string]string{
		"Update":   strings.Replace(wishedDeployment, "nginx", "apache", 1),
		"Deletion": "",
		"Swap":     wishedService,
		"Version":  strings.NewReplacer("apps/v1", "apps/v2", "nginx", "apache").Replace(wishedDeployment),
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, steadyXApp, wished, composed(t, storedDeployment, fieldsOfDeployment))

			rsp, _ := a.run("")
			if got := rsp.GetDesired().GetResources()["d"].GetResource().AsMap(); resource.String(got, "metadata", "resourceVersion") != "7" {
				t.Errorf("desired: %v", got)
			}
		})
	}
}

func TestWhatCrossplaneWritesToFirstIsHeldOfNoVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		manager string
		beside  bool
		want    string
	}{
		"Applied": {"Somebody else's write is a conflict, not overwritten.", "", false, "7"},
		"Never": {
			"Crossplane takes the managers of what it never applied away first: a version would be in conflict with that.",
			"crossplane", false, "",
		},
		"Once": {"So it does with what was there before.", "before-first-apply", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, steadyXApp, imaged("apache"), composed(t, storedDeployment, fieldsOfDeployment))
			entries := resource.List(a.observed, "metadata", "managedFields")

			switch {
			case tc.beside:
				resource.Map(a.observed, "metadata")["managedFields"] = append(entries, map[string]any{"manager": tc.manager, "operation": "Update"})
			case tc.manager != "":
				a.managedBy(tc.manager)
			}

			rsp, message := a.run("")
			if !strings.HasPrefix(message, heldImage) {
				t.Errorf("condition: %q, want %q", message, heldImage)
			}

			if got := resource.String(out(rsp), "metadata", "resourceVersion"); got != tc.want {
				t.Errorf("%s\nresourceVersion %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAnotherKindIsADeletionAndACreation(t *testing.T) {
	a := newApp(t, steadyXApp, wishedService, composed(t, storedDeployment, fieldsOfDeployment))

	rsp, message := a.run("")
	for _, want := range []string{"2 changes held: deletion of Deployment d; ", "creation of Service of composed resource d"} {
		if !strings.Contains(message, want) {
			t.Errorf("condition: %q, want %q", message, want)
		}
	}

	if got := rsp.GetDesired().GetResources()["d"].GetResource().AsMap(); got["kind"] != "Deployment" {
		t.Errorf("desired: %v", got)
	}

	a = newApp(t, freshXApp, wishedService, composed(t, storedDeployment, fieldsOfDeployment))
	a.xr["metadata"] = resource.Map(fromYAML(t, strings.Replace(steadyXApp, "annotations: {",
		`annotations: {kausality.io/allowances: "[{kind: Deployment, mutation: delete, generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}, {kind: Service, mutation: create, generation: 12, initiator: hans, id: '12.0', source: {type: Policy}}]", `, 1)), "metadata")

	rsp, message = a.run("")
	if len(rsp.GetDesired().GetResources()) > 0 || message != "generation 12: in progress" {
		t.Errorf("what may be replaced is deleted first: %q, %v", message, rsp.GetDesired())
	}
}

func TestAnXRThatHasComposedNothingIsNotSettled(t *testing.T) {
	a := newApp(t, freshXApp, "", nil)

	a.wants("generation 12: initializing")

	a.wished = fromYAML(t, wishedService)
	a.wants("generation 12: initializing")
}

func TestAStatusThatIsNeverStoredAsWishedSettles(t *testing.T) {
	a := newApp(t, freshXApp, wishedService, composed(t, storedService, fieldsOfService))
	a.status = map[string]any{"pruned": "x"}

	a.run("") // Its record begins.
	a.wants("generation 12: settled")

	a.status = map[string]any{"pruned": "y"}
	a.wants("generation 12: in progress")
	a.wants("generation 12: settled")

	for i := range 4 { // A status that is another one in each run.
		a.status = map[string]any{"seconds": int64(i)}
		a.run("")
	}

	a.status = map[string]any{"seconds": int64(9)}
	a.wants("generation 12: settled")
}

func TestInitializingHasAnEnd(t *testing.T) {
	a := newApp(t, freshXApp, wishedService, nil)
	a.run("")
	a.observed = composed(t, storedService, fieldsOfService)

	random := func(i int64) {
		a.wished["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80), "targetPort": i}}}
	}

	random(2)
	a.wants("generation 12: initializing")

	a.now = a.now.Add(5 * time.Minute)

	random(3)

	rsp, message := a.run("")
	if !strings.HasPrefix(message, "generation 12: settled, 1 unfinished after 10m0s: Service d is being changed") {
		t.Errorf("condition: %q", message)
	}

	if len(rsp.GetResults()) == 0 || rsp.GetResults()[0].GetReason() != "KausalityNotSettled" {
		t.Errorf("events: %v", rsp.GetResults())
	}

	random(4)
	a.wants("generation 12: settled, 1 change held: spec.ports[0].targetPort of Service d (")
}

func TestARunningFleetIsTakenOver(t *testing.T) {
	open := `
apiVersion: example.org/v1
kind: XApp
metadata: {name: app, uid: xr-uid, generation: 12}
status: {conditions: [{type: Ready, status: "True", observedGeneration: 12}]}
`
	a := newApp(t, open, wishedDeployment, composed(t, strings.Replace(storedDeployment, "env: [{name: A}]", "env: [{name: A, value: rewritten}]", 1), fieldsOfDeployment))

	rsp, message := a.run("")
	if message != "generation 12: settled" {
		t.Errorf("condition: %q", message)
	}

	if len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetReason() != "KausalityBaseline" ||
		!strings.Contains(rsp.GetResults()[0].GetMessage(), "Deployment d: spec.template.spec.containers[0].env[0].value") {
		t.Errorf("events: %v", rsp.GetResults())
	}

	a.wished = fromYAML(t, strings.Replace(wishedDeployment, "nginx", "apache", 1))
	a.wants("generation 12: settled, 1 change held: spec.template.spec.containers[0].image of Deployment d (nginx → apache)")
}
