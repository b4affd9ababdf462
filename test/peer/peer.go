// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

// Package peer runs a webhook that allows everything, as a process of its own: what Kausality's webhooks are measured beside.
package peer

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

// envDir makes a test program the webhook; it names the directory with its certificate.
const envDir = "KAUSALITY_TEST_PEER"

// Paths of its endpoints.
const (
	MutatePath  = "/mutate"
	EnforcePath = "/enforce"
	// StampPath also writes an annotation, of another value each time.
	StampPath = "/stamp"
)

// annotationStamp is what is written at [StampPath].
const annotationStamp = "peer.example.org/stamp"

// Peer is the process of the webhook.
type Peer struct {
	// cmd keeps the other end of its standard input open.
	cmd *exec.Cmd
	// URL of its server, without a path, and the CA of that as PEM.
	URL string
	CA  []byte
}

// PID is that of its process.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Main serves and exits where [Start] started this program, and returns otherwise. TestMain calls it first.
func Main() {
	if dir := os.Getenv(envDir); dir != "" {
		os.Exit(serve(dir))
	}
}

// Start starts the webhook, with its certificate in a directory. It ends with this process.
func Start(tb testing.TB, dir string) *Peer {
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
	cmd.Env = []string{envDir + "=" + dir}
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

	return &Peer{cmd: cmd, URL: "https://" + strings.TrimSpace(address), CA: crt}
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
		return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{annotationStamp: text}))
	}

	return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations/"+strings.ReplaceAll(annotationStamp, "/", "~1"), text))
}

// serve serves until standard input ends, and returns the exit code. The address goes to
// standard output.
func serve(dir string) int {
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
	for path, handler := range map[string]admission.HandlerFunc{MutatePath: allow, EnforcePath: allow, StampPath: stamp} {
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
