// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// function-kausality serves the composition function that lets only asked-for
// changes through.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	function "github.com/crossplane/function-sdk-go"
	"github.com/crossplane/function-sdk-go/logging"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/credentials"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/internal/build"
	"github.com/kausality-io/kausality-crossplane/internal/logfile"
)

var version = "dev"

// cli is the command line, with the flags every composition function takes.
type cli struct {
	Debug bool `help:"Emit debug logs in addition to info logs." short:"d"`

	Network            string           `default:"tcp"   help:"Network on which to listen for gRPC connections."`
	Address            string           `default:":9443" help:"Address at which to listen for gRPC connections."`
	TLSCertsDir        string           `env:"TLS_SERVER_CERTS_DIR" help:"Folder with server certs (tls.key, tls.crt) and the CA used to verify client certs (ca.crt)."`
	Insecure           bool             `help:"Run without mTLS credentials. If you supply this flag --tls-certs-dir is ignored."`
	MaxRecvMessageSize int              `default:"32"    help:"Maximum size of received messages in MiB."`
	MetricsAddress     string           `default:":8080" help:"Address at which to serve Prometheus metrics; empty for none."`
	InitializingLimit  time.Duration    `default:"10m" help:"How long a composite resource may be ready before it counts as settled, so that nothing more is free. 0 for ever."`
	Repair             v1alpha1.Repair  `default:"Apply" enum:"Apply,Hold" help:"What to do where a step's input does not say it about what somebody has changed or deleted by hand, and the Composition composes as before: put it back, or hold that."`
	Version            kong.VersionFlag `help:"Print the version and exit."`

	Decisions logfile.Options `embed:""`
}

// errNoCredentials is the cause when neither certificates nor none are asked for.
var errNoCredentials = errors.New("give --tls-certs-dir a folder with tls.crt, tls.key and ca.crt, or, to try things out, --insecure")

// mebibyte is that in bytes.
const mebibyte = 1024 * 1024

// Run serves until the context ends.
func (c *cli) Run(ctx context.Context) error {
	log, err := function.NewLogger(c.Debug)
	if err != nil {
		return fmt.Errorf("cannot make a logger: %w", err)
	}

	creds, err := c.credentials()
	if err != nil {
		return err
	}

	f, registry, err := c.function(log)
	if err != nil {
		return err
	}

	decisions, err := logfile.New(c.Decisions, f.LogCounters(), func(err error) { log.Info("Decisions are not logged", "error", err) })
	if err != nil {
		return err
	}

	if decisions != nil {
		f.LogDecisions(decisions)

		defer decisions.Close()
	}

	lis, err := (&net.ListenConfig{}).Listen(ctx, c.Network, c.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for calls: %w", err)
	}

	var metrics net.Listener

	if registry != nil {
		if metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.MetricsAddress); err != nil {
			return fmt.Errorf("cannot listen for metrics, give --metrics-address another one, or none: %w", errors.Join(err, lis.Close()))
		}
	}

	log.Info("Serving", "address", lis.Addr().String(), "version", version)

	return newServer(f, creds, c.MaxRecvMessageSize*mebibyte, registry).serve(ctx, lis, metrics)
}

// credentials are mutual TLS, but for trying things out.
func (c *cli) credentials() (credentials.TransportCredentials, error) {
	so := &function.ServeOptions{}

	for _, o := range []function.ServeOption{function.MTLSCertificates(c.TLSCertsDir), function.Insecure(c.Insecure)} {
		if err := o(so); err != nil {
			return nil, fmt.Errorf("cannot use the certificates in %q: %w", c.TLSCertsDir, err)
		}
	}

	if so.Credentials == nil {
		return nil, errNoCredentials
	}

	return so.Credentials, nil
}

// function makes the function, and the registry its metrics are in if they are
// to be served.
func (c *cli) function(log logging.Logger) (*fn.Function, *prometheus.Registry, error) {
	f := fn.New(log, fn.WithInitializingLimit(c.InitializingLimit), fn.WithRepair(c.Repair))
	if c.MetricsAddress == "" {
		return f, nil, nil
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	if err := errors.Join(f.Register(registry), build.Register(registry, version)); err != nil {
		return nil, nil, err
	}

	return f, registry, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	k := kong.Parse(&cli{}, kong.Description("Kausality's composition function."), kong.Vars{"version": version},
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := k.Run()

	stop()
	k.FatalIfErrorf(err)
}
