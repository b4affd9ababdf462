// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// certificates writes a CA and a certificate for 127.0.0.1 into a directory,
// and returns them for a client.
func certificates(t *testing.T) (dir string, client *tls.Config) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	dir = t.TempDir()
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})

	for name, content := range map[string][]byte{
		"tls.crt": cert, "ca.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)

	return dir, &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })

	return l
}

func dial(t *testing.T, l net.Listener, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })

	return conn
}

// patient is a function whose calls take until they are asked to go on.
type patient struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	called, goOn chan struct{}
}

func (p *patient) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	close(p.called)
	<-p.goOn

	return response.To(req, response.DefaultTTL), nil
}

func TestTheServerTakesOnlyClientsWithACertificateAndSaysHowItIs(t *testing.T) {
	dir, client := certificates(t)

	creds, err := (&cli{TLSCertsDir: dir}).credentials()
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	calls, metrics, done := listen(t), listen(t), make(chan error)
	s := newServer(fnv1.UnimplementedFunctionRunnerServiceServer{}, creds, 1<<20, prometheus.NewRegistry())

	go func() { done <- s.serve(ctx, calls, metrics) }()

	conn := dial(t, calls, credentials.NewTLS(client))

	got, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", got, err)
	}

	anybody := client.Clone()
	anybody.Certificates = nil

	for name, creds := range map[string]credentials.TransportCredentials{
		"without a certificate": credentials.NewTLS(anybody), "without TLS": insecure.NewCredentials(),
	} {
		_, err := healthv1.NewHealthClient(dial(t, calls, creds)).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("a client %s: %v", name, err)
		}
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+metrics.Addr().String()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	body, err := io.ReadAll(rsp.Body)
	if err := errors.Join(err, rsp.Body.Close()); err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(body), `grpc_server_handled_total{grpc_code="OK",grpc_method="Check"`) {
		t.Errorf("metrics do not count the call:\n%s", body)
	}

	stop()

	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// echo is a function that wants nothing.
type echo struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (echo) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()}}, nil
}

// TestRequestsOfThirtyTwoMebibytesAreTaken where nothing else is said, and no larger ones.
func TestRequestsOfThirtyTwoMebibytesAreTaken(t *testing.T) {
	c := &cli{}

	parser, err := kong.New(c)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := parser.Parse([]string{"--insecure"}); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	calls, done := listen(t), make(chan error)

	go func() {
		done <- newServer(echo{}, insecure.NewCredentials(), c.MaxRecvMessageSize*mebibyte, nil).serve(ctx, calls, nil)
	}()

	runner := fnv1.NewFunctionRunnerServiceClient(dial(t, calls, insecure.NewCredentials()))

	const slack = 1024 // The rest of the message.

	for size, want := range map[int]codes.Code{32*mebibyte - slack: codes.OK, 32*mebibyte + 1: codes.ResourceExhausted} {
		_, err := runner.RunFunction(t.Context(), &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "large"}, Input: &structpb.Struct{
			Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(strings.Repeat("x", size))},
		}})
		if status.Code(err) != want {
			t.Errorf("a request of some %d bytes: %v, want %s", size, err, want)
		}
	}

	stop()

	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestAStopWaitsForCallsUnderWay(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	calls, done := listen(t), make(chan error)
	f := &patient{called: make(chan struct{}), goOn: make(chan struct{})}

	go func() { done <- newServer(f, insecure.NewCredentials(), 1<<20, nil).serve(ctx, calls, nil) }()

	conn := dial(t, calls, insecure.NewCredentials())
	answered := make(chan error)

	go func() {
		_, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(), &fnv1.RunFunctionRequest{})
		answered <- err
	}()

	<-f.called
	stop()

	select {
	case err := <-done:
		t.Fatalf("stopped with a call under way: %v", err)
	case <-time.After(50 * time.Millisecond):
	}

	close(f.goOn)

	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}

	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}

	if _, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(), &fnv1.RunFunctionRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a call after the stop: %v", err)
	}
}

func TestWhatKeepsTheServerFromStartingIsNamed(t *testing.T) {
	taken := listen(t).Addr().String()
	dir, _ := certificates(t)

	for name, tc := range map[string]struct {
		c    cli
		want string
	}{
		"NoCredentials":  {cli{}, "--tls-certs-dir"},
		"NoCertificates": {cli{TLSCertsDir: t.TempDir()}, "tls.crt"},
		"Calls":          {cli{TLSCertsDir: dir, Network: "tcp", Address: taken}, "cannot listen for calls"},
		"Metrics":        {cli{Insecure: true, Network: "tcp", Address: "127.0.0.1:0", MetricsAddress: taken}, "--metrics-address"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run: %v, want %q", err, tc.want)
			}
		})
	}
}
