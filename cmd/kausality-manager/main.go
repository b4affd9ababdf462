// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// kausality-manager runs the admission webhook and the controllers. The webhook, and the
// gates with their guards, can be switched off.
//
// Its files:
//   - main.go: flags, their validation ([cli.Validate]), and what starts in which order ([cli.Run]); cache and leader election of the
//     manager
//   - provider.go: defaults that depend on the installation: as a Crossplane Provider or not; the own service account
//   - rights.go: rights that the manager needs at least, and the log line while one is missing
//   - certificate.go: the certificate of the webhook
//   - webhook.go: paths, readiness checks and background work of the webhook ([cli.addWebhook]); which clients may ask it; decision log
//   - gates.go: options of gates, from flags
//   - approvers.go: the check of approvers, for the controllers
//   - record.go: the manager's record about itself on the webhook configurations, for kubectl kausality doctor
//   - memory.go: garbage collection by the size of the caches
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/gatecontroller"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/configuration"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/build"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
	"github.com/kausality-io/kausality-crossplane/webhook/certificate"
)

var version = "dev"

// cli is the command line, read by kong from these tags: cobra, which kubectl-kausality
// has for its commands and completion, would need a statement for each flag, and code
// for those that the environment sets.
type cli struct {
	Debug      bool             `help:"Emit debug logs in addition to info logs." short:"d"`
	Version    kong.VersionFlag `help:"Print the version and exit."`
	Kubeconfig string           `help:"Kubeconfig file; without one, the pod's service account is used." type:"existingfile"`

	Namespace                string `default:"kausality-system" env:"POD_NAMESPACE" help:"Namespace the manager runs in."`
	ServiceAccount           string `help:"Service account the manager runs as; asked of the API server if not given."`
	CrossplaneServiceAccount string `default:"system:serviceaccount:crossplane-system:crossplane" help:"User name Crossplane works under."`

	EnableWebhook      bool   `default:"true" help:"Serve the admission webhook and keep its configuration." negatable:""`
	WebhookBindAddress string `default:":9443" help:"Address the webhook listens on."`
	WebhookURL         string `help:"URL under which the API server reaches the webhook; without one it is reached by its Service."`
	WebhookService     string `default:"kausality-webhook" env:"PROVIDER_NAME" help:"Service of the webhook, in the manager's namespace."`
	WebhookServicePort int32  `help:"Port of that Service: 443, or 9443 where the manager is a Crossplane Provider." placeholder:"PORT"`

	WebhookSecret    string        `default:"kausality-webhook-cert" help:"Secret that holds the webhook's certificate; made if missing, and rotated."`
	WebhookCertDir   string        `env:"TLS_SERVER_CERTS_DIR" help:"Directory with tls.crt, tls.key and ca.crt to serve instead, such as a mounted secret; read again when it changes." type:"existingdir"`
	WebhookCAFrom    string        `help:"Certificate of cert-manager, as NAMESPACE/NAME, whose CA is to be injected into the webhook configurations. Goes with --webhook-cert-dir."`
	WebhookCALife    time.Duration `default:"87600h" help:"How long a self-made CA lasts; a new one is published in the last third."`
	WebhookCertLife  time.Duration `default:"8760h" help:"How long a self-made certificate lasts; a new one is made in the last third."`
	WebhookCAPublish time.Duration `default:"10m" help:"How long a new CA is published before it signs."`
	WebhookReload    time.Duration `default:"1m" help:"How often the secret is read again."`

	WebhookClientCA   string   `help:"File of CA certificates, as PEM: only who shows a client certificate of one of them may put reviews to the webhook. Without it, whoever reaches the port may. Read again when it changes." name:"webhook-client-ca" type:"existingfile"`
	WebhookClientName []string `help:"Common names that such a client certificate may be for; any if not given. Goes with --webhook-client-ca." name:"webhook-client-name"`

	EnableGates        bool          `default:"true" help:"Move the gates of managed resources and keep their guards." negatable:""`
	GateLateInitialize bool          `default:"true" help:"Leave LateInitialize in open gates; switch off for providers built on crossplane-runtime before 1.20." negatable:""`
	GateIdentity       []string      `help:"What decides besides the external name, the provider config and the place which external object a managed resource of a kind stands for, such as Topic.kafka.example.org=spec.forProvider.clusterId; may be given again." name:"gate-identity" sep:"none" placeholder:"KIND.GROUP=FIELD"`
	GateWithoutDrift   []string      `help:"Kinds whose external objects may be changed outside: nobody is told, and an update reverts it, as KIND.GROUP or *.GROUP; may be given again." name:"gate-without-drift" sep:"none" placeholder:"KIND.GROUP"`
	GateWithoutLate    []string      `help:"Kinds whose open gates leave LateInitialize out, as KIND.GROUP or *.GROUP; may be given again." name:"gate-without-late-initialize" sep:"none" placeholder:"KIND.GROUP"`
	FunctionName       []string      `default:"function-kausality,kausality-io-function-kausality" help:"Names that function-kausality is installed under; the second one is what it gets from its Configuration. What XRs compose whose Composition runs it is gated." name:"function-name"`
	Settle             time.Duration `default:"1m" help:"How long a change must look applied where status.atProvider does not show it."`
	MaxOpen            time.Duration `default:"1h" help:"How long a gate may be open before that is reported."`
	Overdue            string        `default:"Warn" enum:"Warn,Close" help:"What becomes of a gate that is open for longer than --max-open, where no policy says: Warn or Close."`

	LeaderElect         bool          `help:"Let one replica at a time move gates and keep configurations; all of them serve the webhook."`
	LeaderLeaseDuration time.Duration `default:"15s" help:"How long the others wait for a leader that does not renew its lease."`
	LeaderRenewDeadline time.Duration `default:"10s" help:"How long a leader tries to renew its lease before it gives up and ends."`
	LeaderRetryPeriod   time.Duration `default:"2s" help:"How often the lease is tried."`

	Approvers []string `help:"Service accounts that may approve and reject changes, as NAMESPACE:NAME, where they have the right; people need none of this. May be given again." placeholder:"NAMESPACE:NAME"`

	ReportInterval time.Duration `default:"30s" help:"How often Reports of OpenReports are brought up to date, where its CRDs are installed; 0 for never."`

	MaxWritesInFlight int `default:"20" help:"How many writes the controllers send at once; a quarter is reserved for gates."`

	ShowForeignValues bool `help:"Show in PendingChanges values of objects in other namespaces than that of the object that people edit, too."`

	MetricsBindAddress     string `default:":8080" help:"Address of Prometheus metrics; 0 for none."`
	HealthProbeBindAddress string `default:":8081" help:"Address of /healthz and /readyz."`

	Decisions logfile.Options `embed:""`

	access  *access.Access
	clients *webhook.Clients
	inputs  *cached.Inputs
	// counts are the webhook's metrics; nil without the webhook.
	counts *webhook.Metrics
	// decisions logs them; nil without the webhook, and without a file.
	decisions *logfile.Log
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Description("Kausality's admission webhook and gate controller."), kong.Vars{"version": version})
	k.FatalIfErrorf(c.Run())
}

// kinds are those that the manager reads and writes by types of their own.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extv1.AddToScheme, v1alpha1.AddToScheme, openreports.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register kinds: %w", err)
		}
	}

	return scheme, nil
}

// Run runs until the process is asked to stop.
func (c *cli) Run() error {
	ctrl.SetLogger(zap.New(zap.UseDevMode(c.Debug)))

	ctx := ctrl.SetupSignalHandler()

	go tuneMemory(ctx)

	cfg, err := c.restConfig()
	if err != nil {
		return err
	}

	scheme, err := kinds()
	if err != nil {
		return err
	}

	if err := c.adapt(ctx, cfg, scheme); err != nil {
		return err
	}

	if c.access, err = access.New(cfg, scheme); err != nil {
		return err
	}

	go c.complain(ctx, cfg, scheme, ctrl.Log.WithName("rights"))

	cert, err := c.certificates(ctx, cfg, scheme)
	if err != nil {
		return err
	}

	mgr, err := c.manager(cfg, scheme, cert)
	if err != nil {
		return err
	}

	if err := c.serve(ctx, mgr, cert); err != nil {
		return fmt.Errorf("cannot run: %w", errors.Join(err, c.authorized(ctx, cfg, scheme)))
	}

	return nil
}

// serve adds all that the manager does, and does it until the context ends.
func (c *cli) serve(ctx context.Context, mgr ctrl.Manager, cert certificate.Provider) error {
	if err := c.addInputs(ctx, mgr); err != nil {
		return err
	}

	if err := c.addControllers(mgr, cert); err != nil { //nolint:contextcheck // An index is made at once.
		return err
	}

	if err := c.addWebhook(ctx, mgr, cert); err != nil {
		return err
	}

	err := mgr.Start(ctx)

	// By now the webhook does not serve any more.
	c.decisions.Close()

	return err
}

func (c *cli) restConfig() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}

	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	// The API server's own priority and fairness limits us.
	cfg.QPS = -1

	return cfg, nil
}

// leaderLease is the lease of the replica that leads.
const leaderLease = "kausality-manager"

func (c *cli) manager(cfg *rest.Config, scheme *runtime.Scheme, cert certificate.Provider) (ctrl.Manager, error) {
	host, port, err := splitAddress(c.WebhookBindAddress)
	if err != nil {
		return nil, err
	}

	opts := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: c.MetricsBindAddress},
		HealthProbeBindAddress:  c.HealthProbeBindAddress,
		LeaderElection:          c.LeaderElect,
		LeaderElectionID:        leaderLease,
		LeaderElectionNamespace: c.Namespace,
		LeaderElectionLabels:    map[string]string{v1alpha1.LabelOwn: "true"},
		LeaseDuration:           &c.LeaderLeaseDuration,
		RenewDeadline:           &c.LeaderRenewDeadline,
		RetryPeriod:             &c.LeaderRetryPeriod,
		// Nothing runs after the manager.
		LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{DefaultTransform: trim(c.identity()), NewInformer: cached.NewInformer, ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{c.Namespace: {}}},
		}},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}

	if cert != nil {
		secure := []func(*tls.Config){cert.TLS}

		if c.clients, err = c.webhookClients(); err != nil {
			return nil, err
		}

		if c.clients != nil {
			secure = append(secure, c.clients.TLS)
		}

		opts.WebhookServer = ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: port, TLSOpts: secure})
	}

	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot make a manager: %w", err)
	}

	if err := build.Register(metrics.Registry, version); err != nil {
		return nil, err
	}

	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add a health check: %w", err)
	}

	return mgr, nil
}

// trim leaves of an object in the cache what decisions read.
func trim(more identity.Fields) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			gate.Trim(u, more)
		} else if accessor, err := meta.Accessor(obj); err == nil {
			accessor.SetManagedFields(nil)
		}

		return obj, nil
	}
}

func (c *cli) settings() request.Settings {
	return request.Settings{
		Crossplane: c.CrossplaneServiceAccount, Manager: c.managerUser(), Gates: c.EnableGates, WithoutLateInitialize: c.withoutLate(),
		Identity: c.identity(),
	}
}

func (c *cli) managerUser() string {
	return serviceaccount.MakeUsername(c.Namespace, c.ServiceAccount)
}

func (c *cli) addControllers(mgr ctrl.Manager, cert certificate.Provider) error {
	rights, err := c.reviewer(mgr)
	if err != nil {
		return err
	}

	opts := gatecontroller.Options{
		Namespace: c.Namespace,
		Settings:  c.settings(),
		Gates:     c.EnableGates,
		Gate:      c.gateOptions(),
		Functions: c.FunctionName,
		Access:    c.access,
		Inputs:    c.inputs.Inputs,
		Writes:    c.MaxWritesInFlight,
		Now:       time.Now,
		Reports:   c.ReportInterval,

		Rights:      rights,
		ShowForeign: c.ShowForeignValues,
		Used: func(w v1alpha1.GateWindow) {
			if c.counts != nil {
				c.counts.Used(w.Name)
			}
		},
	}

	if cert != nil {
		opts.Webhook = &configuration.Webhook{
			URL: c.WebhookURL, Service: c.WebhookService, Port: c.WebhookServicePort, Trust: cert, InjectCAFrom: c.WebhookCAFrom,
			MutatePath: webhook.MutatePath, EnforcePath: webhook.EnforcePath, ValidatePath: webhook.ValidatePath, ApprovePath: webhook.ApprovePath,
			UsagePath: webhook.UsagePath,
			Manager:   c.record(),
		}
	}

	return gatecontroller.Setup(mgr, opts)
}

func splitAddress(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("cannot read address %q: %w", address, err)
	}

	port, err := strconv.Atoi(text)
	if err != nil {
		return "", 0, fmt.Errorf("cannot read port of address %q: %w", address, err)
	}

	return host, port, nil
}

// Validate checks what the command line's parser cannot.
func (c *cli) Validate() error {
	if _, err := management.ParseKinds(c.GateWithoutLate); err != nil {
		return fmt.Errorf("--gate-without-late-initialize: %w", err)
	}

	if _, err := management.ParseKinds(c.GateWithoutDrift); err != nil {
		return fmt.Errorf("--gate-without-drift: %w", err)
	}

	if _, err := identity.ParseFields(c.GateIdentity); err != nil {
		return fmt.Errorf("--gate-identity: %w", err)
	}

	if c.MaxWritesInFlight < 1 {
		return fmt.Errorf("--max-writes-in-flight %d: %w", c.MaxWritesInFlight, errNoWrites)
	}

	for _, a := range c.Approvers {
		if !approver.MatchString(a) {
			return fmt.Errorf("--approvers %q: %w", a, errNotAccount)
		}
	}

	return nil
}

// addInputs follows what decisions are made by, and adds what reports whether that was read.
func (c *cli) addInputs(ctx context.Context, mgr ctrl.Manager) error {
	inputs, err := cached.NewInputs(ctx, mgr.GetCache())
	if err != nil {
		return err
	}

	inputs.Inputs.Live = mgr.GetAPIReader()
	c.inputs = inputs

	if err := mgr.AddReadyzCheck("policies", inputs.Inputs.Ready); err != nil {
		return fmt.Errorf("cannot add a readiness check: %w", err)
	}

	return nil
}
