// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// noCertificate is a certificate that lasts.
type noCertificate struct{ notAfter time.Time }

func (noCertificate) Start(ctx context.Context) error { <-ctx.Done(); return nil }
func (noCertificate) NeedLeaderElection() bool        { return false }
func (noCertificate) Bundle() []byte                  { return nil }
func (noCertificate) Changed() <-chan struct{}        { return nil }
func (noCertificate) TLS(*tls.Config)                 {}
func (c noCertificate) NotAfter() time.Time           { return c.notAfter }

// newManager makes a manager of an empty cluster.
func newManager(t *testing.T) manager.Manager {
	t.Helper()

	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion().WithKind("UpgradeAllowance"), meta.RESTScopeRoot)

	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}}, nil
		},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return fake.NewClientBuilder().WithScheme(scheme).Build(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	return mgr
}

// newCLI makes what the flags' defaults make, with metrics of its own.
func newCLI(t *testing.T) *cli {
	t.Helper()

	was := metrics.Registry
	metrics.Registry = prometheus.NewRegistry()

	t.Cleanup(func() { metrics.Registry = was })

	return &cli{Namespace: "kausality-system", ServiceAccount: "manager", EnableWebhook: true, EnableGates: true}
}

// adding is a manager that remembers what is added to it.
type adding struct {
	manager.Manager

	added []manager.Runnable
}

func (a *adding) Add(r manager.Runnable) error {
	a.added = append(a.added, r)

	return a.Manager.Add(r)
}

// TestTheEventsOfTheWebhookAreLimited so that many refusals at once do not keep the API server busy.
func TestTheEventsOfTheWebhookAreLimited(t *testing.T) {
	c := newCLI(t)
	mgr := &adding{Manager: newManager(t)}

	if err := c.addInputs(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}

	judge, err := c.judge(mgr, c.inputs, noCertificate{time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}

	limited, ok := judge.Events.(*recorder.Recorder)
	if !ok || !slices.Contains(mgr.added, manager.Runnable(limited)) {
		t.Errorf("events are recorded by %T, want a *recorder.Recorder that the manager runs", judge.Events)
	}
}
