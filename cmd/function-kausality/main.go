// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// function-kausality serves the composition function that lets only asked-for
// changes through.
package main

import (
	"fmt"

	"github.com/alecthomas/kong"
	function "github.com/crossplane/function-sdk-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kausality-io/kausality-crossplane/fn"
)

var version = "dev"

// cli is the command line, with the flags every composition function takes.
type cli struct {
	Debug bool `help:"Emit debug logs in addition to info logs." short:"d"`

	Network            string           `default:"tcp"   help:"Network on which to listen for gRPC connections."`
	Address            string           `default:":9443" help:"Address at which to listen for gRPC connections."`
	TLSCertsDir        string           `env:"TLS_SERVER_CERTS_DIR" help:"Folder with server certs (tls.key, tls.crt) and the CA used to verify client certs (ca.crt)."`
	Insecure           bool             `help:"Run without mTLS credentials. If you supply this flag --tls-certs-dir is ignored."`
	MaxRecvMessageSize int              `default:"16"    help:"Maximum size of received messages in MiB."`
	MetricsAddress     string           `default:":8080" help:"Address at which to serve Prometheus metrics; empty for none."`
	Version            kong.VersionFlag `help:"Print the version and exit."`
}

// Run serves until the process is told to stop.
func (c *cli) Run() error {
	log, err := function.NewLogger(c.Debug)
	if err != nil {
		return fmt.Errorf("cannot make a logger: %w", err)
	}

	const mebibyte = 1024 * 1024

	f, registry := fn.New(log), prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	if err := f.Register(registry); err != nil {
		return err
	}

	if err := function.Serve(f,
		function.Listen(c.Network, c.Address),
		function.MTLSCertificates(c.TLSCertsDir),
		function.Insecure(c.Insecure),
		function.MaxRecvMessageSize(c.MaxRecvMessageSize*mebibyte),
		function.WithMetricsServer(c.MetricsAddress),
		function.WithMetricsRegistry(registry),
	); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}

	return nil
}

func main() {
	ctx := kong.Parse(&cli{}, kong.Description("Kausality's composition function."), kong.Vars{"version": version})
	ctx.FatalIfErrorf(ctx.Run())
}
