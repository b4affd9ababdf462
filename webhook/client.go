// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// Clients are those who may put reviews to us: who shows a certificate of a CA,
// as the API server does where it is asked to.
//
// Source: k8s.io/apiserver pkg/admission/plugin/webhook/config, the
// WebhookAdmissionConfiguration of --admission-control-config-file.
type Clients struct {
	file  string
	names []string
	log   logr.Logger

	known atomic.Pointer[clientCAs]
}

// clientCAs are what a file of CA certificates says.
type clientCAs struct {
	raw  []byte
	pool *x509.CertPool
}

// errNoCertificates is the cause when a file of CA certificates has none.
var errNoCertificates = errors.New("it holds no CA certificates as PEM")

// NewClients makes Clients of those whose certificate one of the CAs in a file
// has signed, and is for one of some common names; for any where there are no
// names.
func NewClients(file string, names []string, log logr.Logger) (*Clients, error) {
	c := &Clients{file: file, names: names, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}

	return c, nil
}

// read reads the file, if it has changed.
func (c *Clients) read() error {
	raw, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("cannot read the CA certificates of clients: %w", err)
	}

	if known := c.known.Load(); known != nil && bytes.Equal(known.raw, raw) {
		return nil
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return fmt.Errorf("cannot read the CA certificates of clients in %q: %w", c.file, errNoCertificates)
	}

	c.known.Store(&clientCAs{raw: raw, pool: pool})

	return nil
}

// TLS makes a TLS server verify the certificates of clients. The file is read
// for each connection, of which the API server makes few.
func (c *Clients) TLS(cfg *tls.Config) {
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if err := c.read(); err != nil {
			c.log.Error(err, "Going on with the CA certificates of clients that were read last")
		}

		out := cfg.Clone()
		out.GetConfigForClient = nil
		// Who shows none gets an answer that says so; probes of the port are no requests.
		out.ClientAuth, out.ClientCAs = tls.VerifyClientCertIfGiven, c.known.Load().pool

		return out, nil
	}
}

// Only lets nobody else ask.
func (c *Clients) Only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			c.log.Info("Refused a review: no client certificate was shown", "from", r.RemoteAddr)
			http.Error(w, "cannot answer: show a client certificate; the API server has one where "+
				"--admission-control-config-file gives it one for this webhook", http.StatusUnauthorized)

			return
		}

		name := r.TLS.VerifiedChains[0][0].Subject.CommonName
		if len(c.names) > 0 && !slices.Contains(c.names, name) {
			c.log.Info("Refused a review: the client certificate is somebody else's", "from", r.RemoteAddr, "name", name)
			http.Error(w, fmt.Sprintf("cannot answer: the client certificate is for %q, which may not ask", name), http.StatusForbidden)

			return
		}

		next.ServeHTTP(w, r)
	})
}
