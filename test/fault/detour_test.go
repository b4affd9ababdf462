// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// detour is a server between the manager and the API server, which passes on all that the
// manager asks, but for what it is told to answer itself.
type detour struct {
	next  http.Handler
	ended context.Context //nolint:containedctx // The end of the test, which those have to see that it keeps waiting.

	mu sync.Mutex
	// path of requests to answer, and how; nil for none.
	path   string
	answer http.HandlerFunc

	// answered counts these.
	answered atomic.Int64
}

// newDetour has the manager, which is started anew for that, ask through a detour until the
// test ends.
func newDetour(t *testing.T) *detour {
	t.Helper()

	config := running.Config()

	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}

	// Who asks says so by a token, that is passed on.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}

	d := &detour{ended: t.Context(), next: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
	}}

	between := httptest.NewUnstartedServer(d)
	between.EnableHTTP2 = true
	between.StartTLS() // Tokens go nowhere without.
	t.Cleanup(between.Close)

	d.ask(t, between.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: between.Certificate().Raw}))
	t.Cleanup(func() { d.ask(t, config.Host, config.CAData) }) // Before the detour is closed.

	return d
}

// ask has the manager ask a server that has its certificate of a CA.
func (*detour) ask(t *testing.T, host string, ca []byte) {
	t.Helper()

	path := filepath.Join(running.Dir(), "run", "kausality-manager", "kubeconfig")

	kubeconfig, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range kubeconfig.Clusters {
		c.Server, c.CertificateAuthorityData = host, ca
	}

	raw, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := running.Process("kausality-manager").Restart(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// fail has what is posted to a path, by its last part, answered in a way until the test ends,
// or until it is passed on again.
func (d *detour) fail(path string, answer http.HandlerFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.path, d.answer = "/"+path, answer
}

// pass has all passed on.
func (d *detour) pass() { d.fail("", nil) }

func (d *detour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	path, answer := d.path, d.answer
	d.mu.Unlock()

	if answer == nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path) {
		d.next.ServeHTTP(w, r)

		return
	}

	d.answered.Add(1)
	answer(w, r)
}

// hang never answers.
func (d *detour) hang(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-d.ended.Done():
	}
}

// hangUp ends the connection.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// status answers with a status of the API.
func status(code int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}
