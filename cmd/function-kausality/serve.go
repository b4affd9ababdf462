// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	fnv1beta1 "github.com/crossplane/function-sdk-go/proto/v1beta1"
	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// grace is how long calls may take to end once the process is asked to stop.
// Kubernetes kills it after 30 seconds.
const grace = 20 * time.Second

// readHeaderTimeout prevents slow clients of the metrics from piling up.
const readHeaderTimeout = 10 * time.Second

// server is the gRPC service of a composition function, with its health and
// its metrics. Unlike the SDK's, it ends calls before it stops.
type server struct {
	grpc    *grpc.Server
	health  *health.Server
	metrics *http.Server
}

// newServer makes a server of a function. Without a registry it serves no
// metrics.
func newServer(
	f fnv1.FunctionRunnerServiceServer, creds credentials.TransportCredentials, most int, registry *prometheus.Registry,
) *server {
	opts := []grpc.ServerOption{grpc.Creds(creds), grpc.MaxRecvMsgSize(most)}
	s := &server{health: health.NewServer()}

	var calls *grpcprometheus.ServerMetrics

	if registry != nil {
		calls = grpcprometheus.NewServerMetrics()
		registry.MustRegister(calls)

		opts = append(opts, grpc.ChainUnaryInterceptor(calls.UnaryServerInterceptor()))
		s.metrics = &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: readHeaderTimeout}
	}

	s.grpc = grpc.NewServer(opts...)
	reflection.Register(s.grpc)
	fnv1.RegisterFunctionRunnerServiceServer(s.grpc, f)
	fnv1beta1.RegisterFunctionRunnerServiceServer(s.grpc, function.ServeBeta(f))
	healthv1.RegisterHealthServer(s.grpc, s.health)

	if calls != nil {
		calls.InitializeMetrics(s.grpc)
	}

	return s
}

// serve answers calls at one listener, and serves metrics at the other if there
// is one, until the context ends and the calls under way have.
func (s *server) serve(ctx context.Context, calls, metrics net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)

	g.Go(func() error {
		if err := s.grpc.Serve(calls); err != nil {
			return fmt.Errorf("cannot serve calls: %w", err)
		}

		return nil
	})

	if metrics != nil {
		g.Go(func() error {
			if err := s.metrics.Serve(metrics); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("cannot serve metrics: %w", err)
			}

			return nil
		})
	}

	g.Go(func() error {
		<-ctx.Done()
		s.stop()

		return nil
	})

	return g.Wait()
}

// stop takes no more calls, and ends those under way: by itself, or by force
// when their time is up.
func (s *server) stop() {
	s.health.Shutdown()

	force := time.AfterFunc(grace, s.grpc.Stop)
	defer force.Stop()

	s.grpc.GracefulStop()

	if s.metrics != nil {
		_ = s.metrics.Close()
	}
}
