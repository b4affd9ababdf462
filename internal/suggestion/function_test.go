// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	fnv1beta1 "github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// patcher is function-patch-and-transform itself, in the version that stacks run, as a
// process of its own: what it makes of patches is not for tests to say.
var patcher fnv1beta1.FunctionRunnerServiceClient

func TestMain(m *testing.M) {
	code, err := runWithFunction(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot run function-patch-and-transform:", err)
		os.Exit(1)
	}

	os.Exit(code)
}

// runWithFunction builds and starts the function, runs the tests, and stops it.
func runWithFunction(m *testing.M) (int, error) {
	const module = "../../test/stack/modules/function-patch-and-transform"

	dir, err := os.MkdirTemp("", "kausality-suggestion-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is a temporary one.

	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	path := filepath.Join(dir, "function")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "github.com/crossplane-contrib/function-patch-and-transform")
	build.Dir = module
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")

	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}

	address := filepath.Join(dir, "socket")
	serve := exec.CommandContext(ctx, path, "--insecure", "--network=unix", "--address="+address)

	if err := serve.Start(); err != nil {
		return 0, err
	}

	defer func() {
		stop()
		_ = serve.Wait() // It is killed.
	}()

	if err := answers(ctx, address); err != nil {
		return 0, err
	}

	conn, err := grpc.NewClient("unix://"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // The process ends.

	patcher = fnv1beta1.NewFunctionRunnerServiceClient(conn)

	return m.Run(), nil
}

// answers waits until somebody listens.
func answers(ctx context.Context, address string) error {
	var err error

	for range 200 {
		var conn net.Conn

		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", address); err == nil {
			return conn.Close()
		}

		time.Sleep(50 * time.Millisecond)
	}

	return err
}

// errFatal is of a function that cannot go on.
var errFatal = errors.New("the function cannot go on")

// wishes are what a pipeline wants.
type wishes struct {
	xr        *unstructured.Unstructured
	resources map[string]*unstructured.Unstructured
}

// render runs the steps of a Composition that patch and transform.
func render(
	ctx context.Context, composition, xr *unstructured.Unstructured, observed map[string]*unstructured.Unstructured,
) (wishes, error) {
	state := &fnv1beta1.State{}
	// As a function that reads EnvironmentConfigs hands it on.
	env := structOf(map[string]any{"apiextensions.crossplane.io/environment": map[string]any{
		"apiVersion": "internal.crossplane.io/v1alpha1", "kind": "Environment",
	}})

	for _, s := range resource.List(composition.Object, "spec", "pipeline") {
		step, _ := s.(map[string]any)
		input := resource.Map(step, "input")

		if resource.String(input, "kind") != "Resources" {
			continue
		}

		rsp, err := patcher.RunFunction(ctx, &fnv1beta1.RunFunctionRequest{
			Observed: stateOf(xr, observed), Desired: state, Input: structOf(input), Context: env,
		})
		if err != nil {
			return wishes{}, err
		}

		for _, r := range rsp.GetResults() {
			if r.GetSeverity() == fnv1beta1.Severity_SEVERITY_FATAL {
				return wishes{}, fmt.Errorf("%w: %s", errFatal, r.GetMessage())
			}
		}

		state, env = rsp.GetDesired(), rsp.GetContext()
	}

	out := wishes{xr: objectOf(state.GetComposite().GetResource()), resources: map[string]*unstructured.Unstructured{}}
	for name, r := range state.GetResources() {
		out.resources[name] = objectOf(r.GetResource())
	}

	return out, nil
}

func stateOf(xr *unstructured.Unstructured, observed map[string]*unstructured.Unstructured) *fnv1beta1.State {
	out := &fnv1beta1.State{
		Composite: &fnv1beta1.Resource{Resource: structOf(xr.Object)}, Resources: map[string]*fnv1beta1.Resource{},
	}
	for name, u := range observed {
		out.Resources[name] = &fnv1beta1.Resource{Resource: structOf(u.Object)}
	}

	return out
}

func structOf(object map[string]any) *structpb.Struct {
	out, err := structpb.NewStruct(object)
	if err != nil {
		panic(err) // It is from YAML.
	}

	return out
}

func objectOf(s *structpb.Struct) *unstructured.Unstructured {
	object, _ := fixture.Decoded(s.AsMap()).(map[string]any)
	if object == nil {
		object = map[string]any{}
	}

	return &unstructured.Unstructured{Object: object}
}
