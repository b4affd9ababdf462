// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
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

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// lag stands before the API server, and passes on what watches see only after a while: so old is what
// its client has in its caches.
type lag struct {
	by atomic.Int64
	// seen is how many pieces of watches were passed on late.
	seen atomic.Int64
}

// newLag has Crossplane, started anew, see the API server through one until the test ends.
func newLag(t *testing.T) *lag {
	t.Helper()

	l, config := &lag{}, running.Config()

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

	kubeconfig := filepath.Join(running.Dir(), "run", "crossplane", "kubeconfig")

	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	through, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}

	for _, cluster := range through.Clusters {
		cluster.Server = server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}

	use := func(ctx context.Context, write func() error) error {
		return errors.Join(write(), running.Process("crossplane").Restart(ctx))
	}

	t.Cleanup(func() {
		l.by.Store(0)

		if err := use(context.WithoutCancel(t.Context()), func() error { return os.WriteFile(kubeconfig, text, 0o600) }); err != nil {
			t.Error(err)
		}

		server.CloseClientConnections()
		server.Close()
	})

	if err := use(t.Context(), func() error { return clientcmd.WriteToFile(*through, kubeconfig) }); err != nil {
		t.Fatal(err)
	}

	return l
}

// delay passes on late what a watch answers.
func (l *lag) delay(r *http.Response) error {
	if r.Request.URL.Query().Get("watch") != "" && r.StatusCode == http.StatusOK {
		r.Body = l.late(r.Body)
	}

	return nil
}

// late reads what there is at once, and gives each piece of it on when it is as old as it is to be.
func (l *lag) late(body io.ReadCloser) io.ReadCloser {
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
				l.seen.Add(1)
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

func (b lateBody) Close() error { return errors.Join(b.body.Close(), b.PipeReader.Close()) }

// TestAnApprovalIsUsedOnceWhateverCrossplaneSees plays approvals while Crossplane sees everything late: that
// the XR carries an allowance when that was used, what the provider made when the next change is asked for.
func TestAnApprovalIsUsedOnceWhateverCrossplaneSees(t *testing.T) {
	world.Long(t)

	impatient(t)

	b, last, l := newBooth(t, "lagging"), approved{number: 1000, was: "large", size: "small"}, newLag(t)

	for _, by := range []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second} {
		l.by.Store(int64(by))

		for at, s := range last.steps() {
			last = last.next()

			if !t.Run(fmt.Sprint(by, "/", s.name), func(t *testing.T) {
				// Crossplane, killed at any step, begins with what there is, and with what it sees late from then on.
				dies := func(ctx context.Context) (string, error) { return "nothing died", ctx.Err() }
				if by == time.Second {
					dies = func(ctx context.Context) (string, error) { return kill(ctx, "crossplane") }
				}

				if err := b.play(t, last, at, dies); err != nil {
					t.Fatalf("%v\n%s", err, b.dump(t.Context(), last))
				}
			}) {
				return // The next one builds on it.
			}

			if by != time.Second && at == stepListed+1 {
				break // It is the same where nothing dies.
			}
		}
	}

	if l.seen.Load() == 0 {
		t.Fatalf("Crossplane saw everything at once: %v", world.ErrOther)
	}

	t.Logf("Crossplane saw %d pieces of watches late", l.seen.Load())
}
