// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// envAllowAll makes this program the webhook that allows everything; it names the directory with its
// certificate.
const envAllowAll = "KAUSALITY_BENCH_ALLOW_ALL"

// Paths of its endpoints, as ours has them.
const (
	allowAllMutatePath  = "/mutate"
	allowAllEnforcePath = "/enforce"
)

// peer is the process of the webhook that allows everything.
type peer struct {
	// cmd keeps the other end of its standard input open.
	cmd *exec.Cmd
	url string
	ca  []byte
}

// startPeer starts the webhook that allows everything. It ends with this process.
func startPeer(tb testing.TB, dir string) *peer {
	tb.Helper()

	crt, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		tb.Fatal(err)
	}

	for name, content := range map[string][]byte{"tls.crt": crt, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}

	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}

	cmd := exec.Command(self) //nolint:noctx // It ends when its standard input does, so with us.
	cmd.Env = []string{envAllowAll + "=" + dir}
	cmd.Stderr = os.Stderr

	if _, err := cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}

	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the webhook that allows everything did not start: %v", err)
	}

	return &peer{cmd: cmd, url: "https://" + strings.TrimSpace(address), ca: crt}
}

// loopback is where it listens, as the whole stack does.
const loopback = "127.0.0.1"

// allow allows everything.
func allow(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

// serveAllowAll serves until standard input ends, and returns the exit code. The address goes to
// standard output.
func serveAllowAll(dir string) int {
	ctrl.SetLogger(logr.Discard())

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		cancel()
	}()

	port, err := freePort(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	server := webhook.NewServer(webhook.Options{Host: loopback, Port: port, CertDir: dir})
	for _, path := range []string{allowAllMutatePath, allowAllEnforcePath} {
		server.Register(path, &admission.Webhook{Handler: admission.HandlerFunc(allow)})
	}

	go func() {
		for server.StartedChecker()(nil) != nil {
			time.Sleep(startedPoll)
		}

		fmt.Fprintf(os.Stdout, "%s:%d\n", loopback, port)
	}()

	if err := server.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return 0
}

// startedPoll is how often the server is asked whether it serves yet.
const startedPoll = 20 * time.Millisecond

// freePort asks the kernel for a free port.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // Nothing was sent.

	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("unexpected address %s", l.Addr())
	}

	return address.Port, nil
}
