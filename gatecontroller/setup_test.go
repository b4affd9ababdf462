// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// newManager makes a manager of an empty cluster whose API server is not reached.
func newManager(t *testing.T) ctrl.Manager {
	t.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extv1.AddToScheme, metav1.AddMetaToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
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

func TestTheControllersStartAndEndWithTheManager(t *testing.T) {
	opts := Options{
		Namespace: "kausality-system", Settings: request.Settings{Crossplane: "crossplane", Manager: "manager"}, Gates: true,
		Gate: gate.Options{}, Functions: []string{"function-kausality"}, Now: time.Now, Reports: time.Minute,
	}

	mgr := newManager(t)
	if err := Setup(mgr, opts); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- mgr.Start(ctx) }()

	select {
	case <-mgr.Elected():
	case err := <-ended:
		t.Fatalf("it ends at once: %v", err)
	}

	cancel()

	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}

	// What is in the process already says so.
	if err := Setup(newManager(t), opts); err == nil || !strings.Contains(err.Error(), "register") {
		t.Errorf("once more: %v", err)
	}
}

func TestTheMetricsAreDescribed(t *testing.T) {
	reg := prometheus.NewRegistry()
	if err := DescribeMetrics(reg); err != nil {
		t.Fatal(err)
	}

	// None has two meanings.
	if err := DescribeMetrics(reg); err == nil {
		t.Error("they can be described twice")
	}
}
