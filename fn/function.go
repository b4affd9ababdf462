// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Function is the gRPC service. It is safe for concurrent use.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log   logging.Logger
	now   func() time.Time
	cache *policy.Cache
}

// Option configures a Function.
type Option func(*Function)

// WithClock sets the clock by which windows are judged.
func WithClock(now func() time.Time) Option {
	return func(f *Function) { f.now = now }
}

// New makes a Function.
func New(log logging.Logger, opts ...Option) *Function {
	f := &Function{log: log, now: time.Now, cache: policy.NewCache()}
	for _, o := range opts {
		o(f)
	}

	return f
}

// RunFunction holds back what nobody asked for and stamps why on the rest. It
// returns no error: what is wrong is a fatal result that names it.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, err error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	rsp = response.To(req, response.DefaultTTL)

	defer func() {
		if r := recover(); r != nil {
			log.Info("Recovered from a panic", "panic", r, "stack", string(debug.Stack()))
			rsp = response.To(req, response.DefaultTTL)
			response.Fatal(rsp, fmt.Errorf("cannot decide request %q: internal error: %v", req.GetMeta().GetTag(), r))
		}
	}()

	// 1. Ask for policies and windows, in this and every later round.
	in, err := parseInput(req)
	if err != nil {
		response.Fatal(rsp, err)

		return rsp, nil
	}

	requirePolicies(rsp, in.PolicySelector)

	// 2. Read the request.
	s, err := f.readState(req, in)
	if err != nil {
		response.Fatal(rsp, err)

		return rsp, nil
	}

	// 3. Decide on every composed resource.
	s.decide()

	// 4. Answer.
	if err := s.respond(rsp); err != nil {
		response.Fatal(rsp, err)
	}

	log.Debug("Decided", "xr", s.xr.GetName(), "resources", len(s.outcomes), "held", len(s.held()))

	return rsp, nil
}
