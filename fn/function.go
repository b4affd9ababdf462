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
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Function is the gRPC service. It is safe for concurrent use.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log     logging.Logger
	now     func() time.Time
	metrics *metrics
	limit   time.Duration
	repair  v1alpha1.Repair

	compiled *inforce.Cache
	reports  *reports
	answers  *answers
	decoded  *decoded
	// decisions logs what is decided; nil for nobody.
	decisions DecisionLog
}

// Option configures a Function.
type Option func(*Function)

// WithInitializingLimit sets how long an XR may be ready before it counts as
// settled, so that nothing more is free: zero for ever, instead of
// [resource.InitializingLimit].
func WithInitializingLimit(d time.Duration) Option {
	return func(f *Function) { f.limit = d }
}

// WithRepair says what is done, where a step's input does not say it, about what somebody
// has changed or deleted by hand, instead of [v1alpha1.RepairApply].
func WithRepair(r v1alpha1.Repair) Option {
	return func(f *Function) { f.repair = r }
}

// New makes a Function.
func New(log logging.Logger, opts ...Option) *Function {
	f := &Function{
		log: log, now: time.Now, limit: resource.InitializingLimit, repair: v1alpha1.RepairApply,
		metrics: newMetrics(), compiled: inforce.NewCache(), reports: newReports(), answers: newAnswers(), decoded: newDecoded(maxDecoded),
	}
	for _, o := range opts {
		o(f)
	}

	return f
}

// Register makes the function's metrics visible in a registry. The error is of
// metrics of the same name that are there already.
func (f *Function) Register(r prometheus.Registerer) error { return f.metrics.register(r) }

// RunFunction holds back what is not allowed and stamps why on the rest. It
// returns no error: what is wrong is a fatal result that names it.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, err error) {
	log, start := f.log.WithValues("tag", req.GetMeta().GetTag()), f.now()
	rsp = response.To(req, response.DefaultTTL)

	var s *state

	defer func() {
		if r := recover(); r != nil {
			s = nil

			log.Info("Recovered from a panic", "panic", r, "stack", string(debug.Stack()))
			rsp = response.To(req, response.DefaultTTL)
			response.Fatal(rsp, fmt.Errorf("cannot decide request %q: internal error: %v", req.GetMeta().GetTag(), r))
		}

		f.metrics.observe(rsp, s, f.now().Sub(start))
	}()

	if again, counted, ok := f.answers.again(req, start); ok {
		rsp, s = again, counted

		return rsp, nil
	}

	if s, err = f.run(log, req, rsp); err != nil {
		response.Fatal(rsp, err)
	}

	return rsp, nil
}

// run answers a request. The state is nil where it could not be read.
func (f *Function) run(log logging.Logger, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) (*state, error) {
	// 1. Read the request.
	in, err := parseInput(req)
	if err != nil {
		return nil, err
	}

	s, err := f.readState(req, in)
	if err != nil {
		return nil, err
	}

	// 2. Ask for policies and windows, in this and every later round.
	s.require(req, rsp)
	s.requireSchemas(req, rsp)

	// 3. Decide on every composed resource.
	s.decide()
	s.params.require(rsp)
	s.awaited = s.awaited || s.params.awaited

	// 4. Say what is new, once, and not what comes to nothing.
	if !s.awaited {
		s.logDecisions()
		f.reports.log(log, s)
	}

	// 5. Answer, for as long as time makes no difference.
	rsp.Meta.Ttl = durationpb.New(s.base.Basis.GoodFor(response.DefaultTTL))

	if err := s.respond(rsp); err != nil {
		response.Fatal(rsp, err)
	}

	// 6. Say what is large, where Crossplane could not read all of it.
	if err := s.fits(rsp, MaxResponse); err != nil {
		rsp.Desired = nil
		response.Fatal(rsp, err)
	}

	// 7. Remember the answer, in case nothing changes.
	f.answers.remember(req, rsp, s, s.base.Basis.Now)

	log.Debug("Decided", "xr", s.xr.GetName(), "resources", len(s.outcomes), "held", len(s.held()))

	return s, nil
}
