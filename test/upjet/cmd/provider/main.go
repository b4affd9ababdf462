// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// provider is a Crossplane provider for PostgreSQL, made with upjet from the
// Terraform provider beside it: in-process, with asynchronous operations.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	upjetconfig "github.com/crossplane/upjet/v2/pkg/config"
	upjet "github.com/crossplane/upjet/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cluster "github.com/kausality-io/kausality-crossplane/test/upjet/apis/cluster"
	namespaced "github.com/kausality-io/kausality-crossplane/test/upjet/apis/namespaced"
	"github.com/kausality-io/kausality-crossplane/test/upjet/clients"
	"github.com/kausality-io/kausality-crossplane/test/upjet/config"
	"github.com/kausality-io/kausality-crossplane/test/upjet/features"
	clustercontroller "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/cluster"
	namespacedcontroller "github.com/kausality-io/kausality-crossplane/test/upjet/internal/controller/namespaced"
	"github.com/kausality-io/kausality-crossplane/test/upjet/terraform"
)

// rate is how many resources of a kind are worked on at once, and per second.
const rate = 50

// flags are those of the command line.
type flags struct {
	kubeconfig, health string
	poll               time.Duration
	debug              bool
}

func main() {
	f := flags{}
	line := flag.NewFlagSet("provider", flag.ExitOnError) // controller-runtime has flags in the global one.
	line.StringVar(&f.kubeconfig, "kubeconfig", "", "Kubeconfig file.")
	line.StringVar(&f.health, "health-probe-bind-address", "", "Address of /healthz and /readyz.")
	line.DurationVar(&f.poll, "poll", 10*time.Minute, "How often what is outside is looked at.")
	line.BoolVar(&f.debug, "debug", false, "Log more.")
	_ = line.Parse(os.Args[1:]) // It exits by itself.

	if err := f.run(); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

// run runs until the process is asked to stop.
func (f flags) run() error {
	zl := zap.New(zap.UseDevMode(f.debug))
	ctrl.SetLogger(zl)

	cfg, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	cfg.QPS = -1

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, cluster.AddToScheme, namespaced.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("cannot register kinds: %w", err)
		}
	}

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: f.health,
	})
	if err != nil {
		return fmt.Errorf("cannot make a manager: %w", err)
	}

	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("cannot add a check: %w", err)
	}

	if err := f.add(mgr, logging.NewLogrLogger(zl)); err != nil {
		return fmt.Errorf("cannot add the controllers: %w", err)
	}

	return mgr.Start(ctrl.SetupSignalHandler())
}

// add adds the controllers of all kinds.
func (f flags) add(mgr ctrl.Manager, log logging.Logger) error {
	servers := &terraform.Servers{}

	for _, scope := range []struct {
		config func() (*upjetconfig.Provider, error)
		setup  func(ctrl.Manager, upjet.Options) error
	}{
		{config.Cluster, clustercontroller.Setup},
		{config.Namespaced, namespacedcontroller.Setup},
	} {
		provider, err := scope.config()
		if err != nil {
			return err
		}

		o := upjet.Options{
			Options: controller.Options{
				Logger:                  log,
				GlobalRateLimiter:       ratelimiter.NewGlobal(rate),
				PollInterval:            f.poll,
				MaxConcurrentReconciles: rate,
				Features:                &feature.Flags{},
			},
			Provider:              provider,
			OperationTrackerStore: upjet.NewOperationStore(log),
			SetupFn:               clients.Setup(servers),
		}
		o.Features.Enable(features.EnableBetaManagementPolicies)

		if err := scope.setup(mgr, o); err != nil {
			return err
		}
	}

	return nil
}
