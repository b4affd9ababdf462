// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// quickLife makes few reloads in the time of a CA.
var quickLife = Lifetimes{Authority: 45 * time.Minute, Serving: 24 * time.Minute, Publish: 10 * time.Minute, Reload: time.Minute}

// serve does handshakes until the test ends, and returns the server's address.
func serve(t *testing.T, use func(*tls.Config)) string {
	t.Helper()

	cfg := &tls.Config{}
	use(cfg)

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })

	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}

			go func() {
				_ = tls.Server(conn, cfg).HandshakeContext(t.Context())
				_ = conn.Close()
			}()
		}
	}()

	return l.Addr().String()
}

// dial connects as a client that trusts a bundle, and returns what it was
// served.
func dial(t *testing.T, address string, bundle []byte, now func() time.Time) (*x509.Certificate, error) {
	t.Helper()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)

	d := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: testHosts[0], Time: now, MinVersion: tls.VersionTLS12}}

	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // Nothing was written.

	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil //nolint:errcheck // It is what a tls.Dialer returns.
}

// fetched is the bundle of a replica, as a client fetched it once.
type fetched struct {
	bundle []byte
	at     time.Time
}

// TestAClientIsNeverRefusedWhileAuthoritiesRotate runs three replicas, which
// reload at different times, through several CAs. Meanwhile one of them starts
// anew and somebody deletes the secret. Clients trust nothing but what one of
// the replicas published up to (Publish - margin) ago.
func TestAClientIsNeverRefusedWhileAuthoritiesRotate(t *testing.T) {
	const (
		step     = 20 * time.Second
		replicas = 3
		// margin is the time in which all replicas reload, and a step because we look
		// at times in between.
		margin = time.Minute + step
	)

	c, now := fake.NewClientBuilder().Build(), newClock()
	opts := options(now)
	opts.Lifetimes = quickLife

	var (
		certs     [replicas]*Own
		addresses [replicas]string
		history   [replicas][]fetched
		seen      = map[string]bool{}
	)

	launch := func(i int) {
		certs[i] = replica(t, c, opts)
		addresses[i] = serve(t, certs[i].TLS)
	}
	for i := range replicas {
		launch(i)
	}

	for n := range int(105 * time.Minute / step) {
		age := time.Duration(n) * step
		now.set(start.Add(age))

		// CAs begin 4m30s early, so the first has a third of its time left after
		// 28m30s. Its successor, made then, waits.
		if age == 30*time.Minute {
			launch(0)
		}

		// Again 28m30s later, another one waits, and is lost.
		if age == 58*time.Minute {
			if err := c.Delete(t.Context(), secret(t, c)); err != nil {
				t.Fatal(err)
			}
		}

		refresh(t, certs[n%replicas])

		for i := range replicas {
			history[i] = remember(history[i], fetched{bundle: certs[i].Bundle(), at: now.Now()}, quickLife.Publish-margin)
		}

		for _, f := range distinct(history[:]...) {
			for i := range replicas {
				crt, err := dial(t, addresses[i], f.bundle, now.Now)
				if err != nil {
					t.Fatalf("%s after the start, with the bundle of %s before: %v", age, now.Now().Sub(f.at), err)
				}

				seen[string(crt.AuthorityKeyId)] = true
			}
		}
	}

	// The first, its successor, the one after somebody deleted the secret, and its
	// successor.
	if diff := cmp.Diff(4, len(seen)); diff != "" {
		t.Errorf("CAs that signed, -want, +got:\n%s", diff)
	}
}

// remember adds what is fetched now, and forgets what is too old.
func remember(history []fetched, f fetched, oldest time.Duration) []fetched {
	history = append(history, f)
	for f.at.Sub(history[0].at) > oldest {
		history = history[1:]
	}

	return history
}

// distinct leaves out bundles that are there already, and were fetched earlier.
func distinct(histories ...[]fetched) []fetched {
	var out []fetched

	for _, history := range histories {
		for _, f := range history {
			if !slices.ContainsFunc(out, func(o fetched) bool { return bytes.Equal(o.bundle, f.bundle) }) {
				out = append(out, f)
			}
		}
	}

	return out
}
