// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// provider is a small Crossplane provider for tests, built on
// crossplane-runtime. Its external system is in the process of the test. Towards
// each managed resource it behaves as that one's traits say.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/test/provider/external"
)

// cli is the command line.
type cli struct {
	Kubeconfig             string        `help:"Kubeconfig file." required:""                            type:"existingfile"`
	HealthProbeBindAddress string        `help:"Address of /healthz and /readyz." required:""`
	External               string        `help:"URL of the external system." required:""`
	Poll                   time.Duration `default:"1s" help:"How often an external object is looked at."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Description("A provider for tests."))
	k.FatalIfErrorf(c.Run())
}

const (
	// workers is how many managed resources are worked on at once.
	workers = 20
	// soonest and latest are how soon what did not succeed is tried again.
	soonest, latest = 20 * time.Millisecond, time.Second
)

// Run runs until the process is asked to stop.
func (c *cli) Run() error {
	ctrl.SetLogger(zap.New())

	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	cfg.QPS = -1

	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("cannot register kinds: %w", err)
	}

	addToScheme(scheme)

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: c.HealthProbeBindAddress,
	})
	if err != nil {
		return fmt.Errorf("cannot make a manager: %w", err)
	}

	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("cannot add a check: %w", err)
	}

	if err := c.add(mgr); err != nil {
		return fmt.Errorf("cannot add the controller: %w", err)
	}

	return mgr.Start(ctrl.SetupSignalHandler())
}

// add adds the controller of Servers.
func (c *cli) add(mgr ctrl.Manager) error {
	again := make(chan event.TypedGenericEvent[*Server])
	connect := &connector{
		client: external.Client{URL: c.External}, kube: mgr.GetClient(), again: again,
		operations: operations{all: map[types.UID]*operation{}},
	}

	r := managed.NewReconciler(mgr, xpresource.ManagedKind(serverKind()),
		managed.WithManagementPolicies(),
		managed.WithDeterministicExternalName(true),
		managed.WithCreationGracePeriod(soonest),
		managed.WithPollInterval(c.Poll),
		managed.WithPollJitterHook(c.Poll/4),
		managed.WithExternalConnector(connect))

	return ctrl.NewControllerManagedBy(mgr).
		Named("servers").
		For(&Server{}).
		WatchesRawSource(source.Channel(again, &handler.TypedEnqueueRequestForObject[*Server]{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonest, latest),
		}).
		Complete(r)
}

// connector connects to the external system as a managed resource's traits say.
type connector struct {
	client     external.Client
	kube       client.Client
	again      chan<- event.TypedGenericEvent[*Server]
	operations operations
}

// Connect returns the client for one managed resource.
func (c *connector) Connect(_ context.Context, mg xpresource.Managed) (managed.ExternalClient, error) {
	s, ok := mg.(*Server)
	if !ok {
		return nil, errNoServer
	}

	p := plain{client: c.client}
	if !s.has(Asynchronous) {
		return &p, nil
	}

	return &asynchronous{plain: p, operation: c.operations.of(s.GetUID()), kube: c.kube, again: c.again}, nil
}
