// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	stampPath           = "/stamp"
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

// stampLength is how many bytes our annotations of an object here have.
const stampLength = 700

// stamp allows everything, and writes an annotation that is another one each time.
func stamp(_ context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete {
		return admission.Allowed("")
	}

	text := string(req.UID) + strings.Repeat("x", stampLength-len(req.UID))

	obj := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.Object.Raw, &obj); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}

	if len(obj.Annotations) == 0 {
		return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{group + "/stamp": text}))
	}

	return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations/"+group+"~1stamp", text))
}

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
	for path, handler := range map[string]admission.HandlerFunc{allowAllMutatePath: allow, allowAllEnforcePath: allow, stampPath: stamp} {
		server.Register(path, &admission.Webhook{Handler: handler})
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
