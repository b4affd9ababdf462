// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
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

// lateServer is a webhook server that answers one more request when it is stopped.
type lateServer struct {
	ctrlwebhook.Server

	answer func()
}

func (*lateServer) NeedLeaderElection() bool          { return false }
func (*lateServer) Register(string, http.Handler)     {}
func (*lateServer) StartedChecker() healthz.Checker   { return healthz.Ping }
func (s *lateServer) Start(ctx context.Context) error { <-ctx.Done(); s.answer(); return nil }

// emptyCache is a cache of an empty cluster whose informers have stores.
type emptyCache struct{ *fixture.Cache }

func (c emptyCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if obj.GetObjectKind().GroupVersionKind() == shard.Namespace().GroupVersionKind() {
		return storing{&controllertest.FakeInformer{Synced: true}}, nil
	}

	return c.Cache.GetInformer(ctx, obj, opts...)
}

type storing struct{ *controllertest.FakeInformer }

func (storing) GetStore() toolscache.Store {
	return toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
}

// apiServer has one window, and remembers the Leases that are created.
type apiServer struct {
	mu     sync.Mutex
	leases []string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/leases"):
		body, _ := io.ReadAll(r.Body)

		a.mu.Lock()
		a.leases = append(a.leases, string(body))
		a.mu.Unlock()

		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/upgradeallowances/w"):
		_, _ = io.WriteString(w, `{"kind": "UpgradeAllowance", "apiVersion": "kausality.io/v1alpha1", "metadata": {"name": "w", "uid": "window"},
			"spec": {"validUntil": "2100-01-01T00:00:00Z"}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	}
}

// newManager makes a manager of an empty cluster, with a webhook server.
func newManager(t *testing.T, host string, server ctrlwebhook.Server) manager.Manager {
	t.Helper()

	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion().WithKind("UpgradeAllowance"), meta.RESTScopeRoot)

	mgr, err := ctrl.NewManager(&rest.Config{Host: host}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: server,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return emptyCache{&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}}}, nil
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

	main, err := shard.New("")
	if err != nil {
		t.Fatal(err)
	}

	return &cli{Namespace: "kausality-system", ServiceAccount: "manager", EnableWebhook: true, EnableGates: true, shard: main}
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
	mgr := &adding{Manager: newManager(t, "https://127.0.0.1:1", &lateServer{})}

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
