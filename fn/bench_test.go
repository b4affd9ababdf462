// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/fn"
)

// largerXR has allowed its resources a change, in the form Kausality writes.
const largerXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  uid: u1
  resourceVersion: "99100"
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: |
      - kind: Instance
        mutation: spec.forProvider.engineVersion
        generation: 12
        id: "12.0"
        initiator: hans@example.com
        policy: databases
        source:
          type: Policy
          name: databases
          field: spec.version
        trace:
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.version
      - relation: External
        mutations:
        - Update
        generation: 12
        id: "12.0"
        initiator: hans@example.com
        policy: databases
        source:
          type: Policy
          name: databases
          field: spec.version
        trace:
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.version
spec: {version: "17.1"}
status:
  conditions: [{type: Ready, status: "True", observedGeneration: 11}]
`

// aboutDatabases is the policy that allowed it.
const aboutDatabases = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: databases}
spec:
  match: {kind: XDatabase, fields: [spec.version]}
  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}]
  allow:
  - {kind: Instance, mutations: [spec.forProvider.engineVersion]}
  - {relation: External, mutations: [Update]}
`

// echo is a function that changes nothing: the floor.
type echo struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (echo) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return response.To(req, response.DefaultTTL), nil
}

// serve serves a function on a free port of this machine, until the test ends.
func serve(tb testing.TB, f fnv1.FunctionRunnerServiceServer) fnv1.FunctionRunnerServiceClient {
	tb.Helper()

	const mebibyte = 1 << 20

	lis, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}

	srv := grpc.NewServer(grpc.MaxRecvMsgSize(64 * mebibyte))
	fnv1.RegisterFunctionRunnerServiceServer(srv, f)

	go func() { _ = srv.Serve(lis) }()

	tb.Cleanup(srv.Stop)

	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64*mebibyte)))
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = conn.Close() })

	return fnv1.NewFunctionRunnerServiceClient(conn)
}

// composite is a request of an XR with n managed resources of some 5 KiB, of
// which the first is to change where asked.
func composite(tb testing.TB, n int, change bool) *fnv1.RunFunctionRequest {
	tb.Helper()

	raw, err := os.ReadFile("../engine/decision/testdata/instance.yaml")
	if err != nil {
		tb.Fatal(err)
	}

	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "bench"},
		Observed: &fnv1.State{
			Composite: toResource(tb, fromYAML(tb, largerXR)),
			Resources: map[string]*fnv1.Resource{},
		},
		Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{}},
		RequiredResources: map[string]*fnv1.Resources{
			"kausality.io/allowancepolicies": {Items: []*fnv1.Resource{toResource(tb, fromYAML(tb, aboutDatabases))}},
		},
	}
	live := fromYAML(tb, string(raw))
	wanted := wishOf(fromYAML(tb, string(raw)))
	applied(live, wanted)

	for i := range n {
		name := fmt.Sprintf("resource-%d", i)
		req.Observed.Resources[name] = toResource(tb, live)
		req.Desired.Resources[name] = toResource(tb, wanted)
	}

	// It has what the function asks for, as in the last round.
	for key := range called(tb, req).GetRequirements().GetExtraResources() { //nolint:staticcheck // As it asks whom it does not know.
		if _, ok := req.GetRequiredResources()[key]; !ok && !strings.HasPrefix(key, "kausality.io/allowancepolicies/") {
			req.RequiredResources[key] = &fnv1.Resources{}
		}
	}

	recall(tb, req)

	if change {
		fields := req.GetDesired().GetResources()["resource-0"].GetResource().GetFields()["spec"].GetStructValue().GetFields()
		fields["forProvider"].GetStructValue().Fields["engineVersion"] = toResource(tb, map[string]any{"v": "17.1"}).GetResource().GetFields()["v"]

		// Up to now the generation before was said to be settled.
		xr := req.GetObserved().GetComposite().GetResource().AsMap()
		status := resource.Map(xr, "status")

		for _, c := range resource.List(status, "conditions") {
			if m, _ := c.(map[string]any); m["type"] == v1alpha1.ConditionKausality {
				m["message"] = strings.Replace(resource.String(m, "message"), "generation 12", "generation 11", 1)
			}
		}

		req.Observed.Composite = toResource(tb, xr)

		if last := called(tb, req); last.GetConditions()[0].GetReason() == v1alpha1.ReasonHeld {
			tb.Fatalf("the change is held: %v", last)
		}
	}

	return req
}

// wishOf is what a Composition wishes of an object: its spec, but for what the gate and the
// provider set.
func wishOf(object map[string]any) map[string]any {
	spec := resource.Map(object, "spec")
	delete(spec, "managementPolicies")
	delete(spec, "initProvider")

	for _, late := range []string{"availabilityZone", "backupWindow", "maintenanceWindow"} {
		delete(resource.Map(spec, "forProvider"), late)
	}

	return map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "spec": spec}
}

// applied has a live object say that Crossplane has applied a wish.
func applied(live, wish map[string]any) {
	xr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1alpha1", "kind": "XDatabase"}}
	xr.SetName("my-database-xyz")

	entry, _ := resource.List(live, "metadata", "managedFields")[0].(map[string]any)
	entry["manager"] = managedfields.ManagerOf(xr)
	resource.Map(entry, "fieldsV1")["f:spec"] = fieldsOf(wish["spec"])
}

// fieldsOf are the fields of a value, as the API server writes them.
func fieldsOf(v any) map[string]any {
	out := map[string]any{}

	m, _ := v.(map[string]any)
	for key, e := range m {
		out["f:"+key] = fieldsOf(e)
	}

	return out
}

// recall has what is observed carry what the function noted when it was composed, and said
// of the XR.
func recall(tb testing.TB, req *fnv1.RunFunctionRequest) {
	tb.Helper()

	rsp := called(tb, req)

	for name, r := range rsp.GetDesired().GetResources() {
		noted := &unstructured.Unstructured{Object: r.GetResource().AsMap()}
		observed := &unstructured.Unstructured{Object: req.GetObserved().GetResources()[name].GetResource().AsMap()}
		annotations := observed.GetAnnotations()

		if annotations == nil {
			annotations = map[string]string{}
		}

		maps.Copy(annotations, noted.GetAnnotations())
		observed.SetAnnotations(annotations)
		req.GetObserved().GetResources()[name] = toResource(tb, observed.Object)
	}

	// Once all is as it is to be, that is said of the XR, and once more is nothing new.
	for range 2 {
		said := called(tb, req).GetConditions()[0]
		xr := req.GetObserved().GetComposite().GetResource().AsMap()
		status := resource.Map(xr, "status")
		status["conditions"] = append(slices.DeleteFunc(resource.List(status, "conditions"), func(c any) bool {
			m, _ := c.(map[string]any)

			return resource.String(m, "type") == said.GetType()
		}), map[string]any{"type": said.GetType(), "status": "True", "reason": said.GetReason(), "message": said.GetMessage()})
		req.Observed.Composite = toResource(tb, xr)
	}

	if last := called(tb, req); len(last.GetResults()) > 0 || last.GetConditions()[0].GetStatus() != fnv1.Status_STATUS_CONDITION_TRUE {
		tb.Fatalf("it is not settled: %v", last)
	}
}

// called is what the function answers.
func called(tb testing.TB, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	tb.Helper()

	rsp, err := fn.New(logging.NewNopLogger()).RunFunction(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}

	return rsp
}

func fromYAML(tb testing.TB, text string) map[string]any {
	tb.Helper()

	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatal(err)
	}

	return out
}

// BenchmarkRunFunction measures a call over gRPC beside a function that
// returns its request as it is.
func BenchmarkRunFunction(b *testing.B) {
	peers := map[string]fnv1.FunctionRunnerServiceClient{
		"kausality": serve(b, fn.New(logging.NewNopLogger())),
		"echo":      serve(b, echo{}),
	}

	for _, n := range []int{1, 10, 100, 500} {
		for _, changed := range []bool{false, true} {
			req := composite(b, n, changed)

			for _, by := range []string{"echo", "kausality"} {
				b.Run(fmt.Sprintf("resources=%d/changed=%v/by=%s", n, changed, by), func(b *testing.B) {
					b.ReportAllocs()

					for b.Loop() {
						rsp, err := peers[by].RunFunction(b.Context(), req)
						if err != nil || len(rsp.GetDesired().GetResources()) != n {
							b.Fatal(err, len(rsp.GetDesired().GetResources()))
						}
					}
				})
			}
		}
	}
}

// BenchmarkRunFunctionBesideEcho measures how many times as long a call takes as one of a function that returns its request, as
// medians of calls that take turns: as-echo-x.
func BenchmarkRunFunctionBesideEcho(b *testing.B) {
	ours, theirs := serve(b, fn.New(logging.NewNopLogger())), serve(b, echo{})

	for _, n := range []int{1, 10, 100, 500} {
		for _, changed := range []bool{false, true} {
			req := composite(b, n, changed)

			b.Run(fmt.Sprintf("resources=%d/changed=%v", n, changed), func(b *testing.B) {
				took := map[fnv1.FunctionRunnerServiceClient][]time.Duration{}

				for b.Loop() {
					for _, peer := range []fnv1.FunctionRunnerServiceClient{ours, theirs} {
						start := time.Now()

						if rsp, err := peer.RunFunction(b.Context(), req); err != nil || len(rsp.GetDesired().GetResources()) != n {
							b.Fatal(err, len(rsp.GetDesired().GetResources()))
						}

						took[peer] = append(took[peer], time.Since(start))
					}
				}

				median := func(list []time.Duration) float64 {
					slices.Sort(list)

					return float64(list[len(list)/2])
				}

				b.ReportMetric(median(took[ours])/median(took[theirs]), "as-echo-x")
			})
		}
	}
}

// BenchmarkObserved measures how many times as many bytes the functions of a pipeline receive
// of what is observed, for what Kausality notes on it: as-without-x. Policies and parameters
// go to its own step alone.
func BenchmarkObserved(b *testing.B) {
	for _, n := range []int{1, 10, 100, 500} {
		req := composite(b, n, false)

		b.Run(fmt.Sprintf("resources=%d", n), func(b *testing.B) {
			var with, without int

			for b.Loop() {
				with = proto.Size(req.GetObserved())
				without = proto.Size(unnoted(b, req.GetObserved()))
			}

			b.ReportMetric(float64(with)/float64(without), "as-without-x")
			b.ReportMetric(float64(with-without)/float64(n+1), "B/object")
		})
	}
}

// unnoted is a state without what Kausality notes on objects.
func unnoted(tb testing.TB, in *fnv1.State) *fnv1.State {
	tb.Helper()

	strip := func(r *fnv1.Resource) *fnv1.Resource {
		u := &unstructured.Unstructured{Object: r.GetResource().AsMap()}
		annotations := u.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.Group+"/") })
		u.SetAnnotations(annotations)

		conditions := slices.DeleteFunc(resource.List(u.Object, "status", "conditions"), func(c any) bool {
			m, _ := c.(map[string]any)

			return resource.String(m, "type") == v1alpha1.ConditionKausality
		})
		if status := resource.Map(u.Object, "status"); status != nil {
			status["conditions"] = conditions
		}

		return toResource(tb, u.Object)
	}

	out := &fnv1.State{Composite: strip(in.GetComposite()), Resources: map[string]*fnv1.Resource{}}
	for name, r := range in.GetResources() {
		out.Resources[name] = strip(r)
	}

	return out
}

// BenchmarkRunFunctionMemory measures what 10,000 calls leave behind.
func BenchmarkRunFunctionMemory(b *testing.B) {
	const calls = 10_000

	client := serve(b, fn.New(logging.NewNopLogger()))
	req := composite(b, 1, true)

	heap := func() float64 {
		var m runtime.MemStats

		runtime.GC()
		runtime.ReadMemStats(&m)

		return float64(m.HeapAlloc)
	}

	b.Run("calls=10000/by=kausality", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.RunFunction(b.Context(), req); err != nil { // Connections and caches are there now.
				b.Fatal(err)
			}

			before := heap()

			for range calls {
				if _, err := client.RunFunction(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(heap()/before, "heap-growth")
		}
	})
}
