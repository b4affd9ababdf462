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
	"testing"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/fn"
)

// largerXR has allowed its resources a change, in the form Kausality writes.
const largerXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: my-database-xyz
  generation: 12
  annotations:
    kausality.io/initialized: "true"
    kausality.io/allowances: |
      - kind: Instance
        mutation: spec.forProvider.engineVersion
        generation: 12
        initiator: hans@example.com
        trace:
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.version
      - relation: External
        mutations:
        - Update
        generation: 12
        initiator: hans@example.com
        trace:
        - kind: XDatabase
          name: my-database-xyz
          generation: 12
          field: spec.version
spec: {version: "17.1"}
status:
  conditions: [{type: Ready, status: "True", observedGeneration: 11}]
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
	}
	live := fromYAML(tb, string(raw))
	composed := fromYAML(tb, string(raw))
	wanted := map[string]any{"apiVersion": composed["apiVersion"], "kind": composed["kind"], "spec": composed["spec"]}

	for i := range n {
		name := fmt.Sprintf("resource-%d", i)
		req.Observed.Resources[name] = toResource(tb, live)
		req.Desired.Resources[name] = toResource(tb, wanted)
	}

	recall(tb, req)

	if change {
		fields := req.GetDesired().GetResources()["resource-0"].GetResource().GetFields()["spec"].GetStructValue().GetFields()
		fields["forProvider"].GetStructValue().Fields["engineVersion"] = toResource(tb, map[string]any{"v": "17.1"}).GetResource().GetFields()["v"]
	}

	return req
}

// recall has what is observed carry what the function noted when it was composed.
func recall(tb testing.TB, req *fnv1.RunFunctionRequest) {
	tb.Helper()

	rsp, err := fn.New(logging.NewNopLogger()).RunFunction(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}

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
