// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Lag stands before the API server, and passes on what watches see only after a while: so old is what
// its clients have in their caches.
type Lag struct {
	by atomic.Int64
	// Seen is how many pieces of watches were passed on late.
	Seen atomic.Int64
}

// By has watches see from now on how things were a while ago.
func (l *Lag) By(d time.Duration) { l.by.Store(int64(d)) }

// NewLag has processes of a stack, started anew, see the API server through one until the test ends.
func NewLag(t *testing.T, s *stack.Stack, processes ...string) *Lag {
	t.Helper()

	l, config := &Lag{}, s.Config()

	api, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the API server has no certificate")
	}

	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(api) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval:  -1,
		ModifyResponse: l.delay,
	})

	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})

	for _, name := range processes {
		l.through(t, s, name, server)
	}

	return l
}

// through has one process see the API server through the relay.
func (l *Lag) through(t *testing.T, s *stack.Stack, name string, relay *httptest.Server) {
	t.Helper()

	kubeconfig := filepath.Join(s.Dir(), "run", name, "kubeconfig")

	text, err := os.ReadFile(kubeconfig)
	Must(t, err)

	config, err := clientcmd.Load(text)
	Must(t, err)

	for _, cluster := range config.Clusters {
		cluster.Server = relay.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: relay.Certificate().Raw})
	}

	t.Cleanup(func() {
		l.By(0)

		if err := errors.Join(os.WriteFile(kubeconfig, text, 0o600), s.Process(name).Restart(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})

	Must(t, errors.Join(clientcmd.WriteToFile(*config, kubeconfig), s.Process(name).Restart(t.Context())))
}

// delay passes on late what a watch answers.
func (l *Lag) delay(r *http.Response) error {
	if r.Request.URL.Query().Get("watch") != "" && r.StatusCode == http.StatusOK {
		r.Body = l.late(r.Body)
	}

	return nil
}

// late reads what there is at once, and gives each piece of it on when it is as old as it is to be.
func (l *Lag) late(body io.ReadCloser) io.ReadCloser {
	type piece struct {
		at   time.Time
		data []byte
	}

	const room = 32 << 10

	out, in := io.Pipe()
	pieces := make(chan piece, room)

	var last error

	go func() {
		defer close(pieces)

		for last == nil {
			data := make([]byte, room)

			var n int
			if n, last = body.Read(data); n > 0 {
				pieces <- piece{time.Now(), data[:n]}
			}
		}
	}()

	go func() {
		for p := range pieces {
			by := time.Duration(l.by.Load())
			time.Sleep(time.Until(p.at.Add(by)))

			if by > 0 {
				l.Seen.Add(1)
			}

			if _, err := in.Write(p.data); err != nil {
				break
			}
		}

		for range pieces { // Nobody reads any more.
			continue
		}

		in.CloseWithError(last)
	}()

	return lateBody{out, body}
}

type lateBody struct {
	*io.PipeReader

	body io.Closer
}

// Close closes both ends.
func (b lateBody) Close() error { return errors.Join(b.body.Close(), b.PipeReader.Close()) }
