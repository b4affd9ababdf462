// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// oldprovider is a small Crossplane provider for tests, built on
// crossplane-runtime 1.19. That one does not support the management policies
// ["Observe","LateInitialize"], and sets no observedGeneration on conditions. Its
// external system is that of test/provider.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	// The flag --kubeconfig is controller-runtime's.
	probe := flag.String("health-probe-bind-address", "127.0.0.1:0", "Address of /healthz and /readyz.")
	system := flag.String("external", "", "URL of the external system.")
	poll := flag.Duration("poll", time.Second, "How often an external object is looked at.")
	flag.Parse()

	if err := run(*probe, *system, *poll); err != nil {
		fmt.Fprintln(os.Stderr, "oldprovider:", err)
		os.Exit(1)
	}
}

// soonest and latest are how soon what did not succeed is tried again.
const soonest, latest = 20 * time.Millisecond, time.Second

// run runs until the process is asked to stop.
func run(probe, system string, poll time.Duration) error {
	ctrl.SetLogger(zap.New())

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("cannot register kinds: %w", err)
	}

	addToScheme(scheme)

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: probe,
	})
	if err != nil {
		return fmt.Errorf("cannot make a manager: %w", err)
	}

	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("cannot add a check: %w", err)
	}

	for name, object := range map[string]client.Object{"Disk": &Disk{}, "Tape": &Tape{}} {
		r := managed.NewReconciler(mgr, resource.ManagedKind(groupVersion().WithKind(name)),
			managed.WithManagementPolicies(),
			managed.WithCreationGracePeriod(soonest),
			managed.WithPollInterval(poll),
			managed.WithExternalConnecter(connector{url: system}))

		err := ctrl.NewControllerManagedBy(mgr).
			Named(name).
			For(object).
			WithOptions(controller.Options{
				RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonest, latest),
			}).
			Complete(r)
		if err != nil {
			return fmt.Errorf("cannot add the controller of %q: %w", name, err)
		}
	}

	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		return fmt.Errorf("cannot run: %w", err)
	}

	return nil
}
