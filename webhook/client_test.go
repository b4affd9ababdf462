// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// clientCA signs certificates of clients.
type clientCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newClientCA(tb testing.TB, name string) clientCA {
	tb.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}

	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}

	return clientCA{cert: signed(tb, tmpl, tmpl, &key.PublicKey, key), key: key}
}

func signed(tb testing.TB, tmpl, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()

	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, public, key)
	if err != nil {
		tb.Fatal(err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}

	return cert
}

// client is one with a certificate of the CA.
func (ca clientCA) client(tb testing.TB, name string) *tls.Certificate {
	tb.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}

	cert := signed(tb, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.cert, &key.PublicKey, ca.key)

	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (ca clientCA) write(tb testing.TB, file string) {
	tb.Helper()

	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// asked is how a server answers a client.
func asked(tb testing.TB, server *httptest.Server, cert *tls.Certificate) int {
	tb.Helper()

	cfg := &tls.Config{InsecureSkipVerify: true} // Not what is tested.
	if cert != nil {
		cfg.Certificates = []tls.Certificate{*cert}
	}

	transport := &http.Transport{TLSClientConfig: cfg}
	defer transport.CloseIdleConnections()

	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		tb.Fatal(err)
	}

	rsp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer rsp.Body.Close() //nolint:errcheck // Nothing is read.

	return rsp.StatusCode
}

func TestOnlyWhoShowsACertificateMayAsk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	ours, other := newClientCA(t, "ours"), newClientCA(t, "other")
	ours.write(t, file)

	clients, err := webhook.NewClients(file, []string{"kube-apiserver"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	reached := 0
	server := httptest.NewUnstartedServer(clients.Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ })))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*ours.client(t, "server")}}
	clients.TLS(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)

	for name, tc := range map[string]struct {
		cert *tls.Certificate
		want int
	}{
		"None":        {want: http.StatusUnauthorized},
		"Ours":        {cert: ours.client(t, "kube-apiserver"), want: http.StatusOK},
		"AnotherName": {cert: ours.client(t, "some-pod"), want: http.StatusForbidden},
		"AnotherCA":   {cert: other.client(t, "kube-apiserver"), want: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			reached = 0

			if got := asked(t, server, tc.cert); got != tc.want {
				t.Errorf("answered %d, want %d", got, tc.want)
			}

			if want := tc.want == http.StatusOK; want != (reached > 0) {
				t.Errorf("reached %d times", reached)
			}
		})
	}

	// Another CA takes its place while we run; a broken file changes nothing.
	other.write(t, file)

	if got := asked(t, server, other.client(t, "kube-apiserver")); got != http.StatusOK {
		t.Errorf("after the CA was replaced: answered %d", got)
	}

	if err := os.WriteFile(file, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}

	if got := asked(t, server, other.client(t, "kube-apiserver")); got != http.StatusOK {
		t.Errorf("after the file was broken: answered %d", got)
	}
}

func TestAFileWithoutCAsIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")

	if _, err := webhook.NewClients(file, nil, logr.Discard()); err == nil {
		t.Error("a file that is not there is taken")
	}

	if err := os.WriteFile(file, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := webhook.NewClients(file, nil, logr.Discard()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file without certificates: %v", err)
	}
}
