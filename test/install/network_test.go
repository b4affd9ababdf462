// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// network reaches pods by their Services, as a cluster's does: by the names of
// Services for Crossplane, which calls functions by these, and by their IPs, which
// are of this machine, for the API server, which calls webhooks.
type network struct {
	*node

	// proxy is what Crossplane connects by, as there is no DNS here that would know
	// the name of a Service.
	proxy net.Listener

	ips sync.Map
}

func newNetwork() (*network, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}

	return &network{node: &node{}, proxy: l}, nil
}

// serveNames serves the names of Services until the test ends.
func (n *network) serveNames(t *testing.T, c *cluster) {
	t.Helper()

	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.connect(c, w, r) }),
		ReadHeaderTimeout: time.Minute,
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		_ = server.Serve(n.proxy)
	}()

	t.Cleanup(func() {
		_ = server.Close()

		<-done
	})
}

// connect connects somebody with a pod of the Service that it names.
func (n *network) connect(c *cluster, w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.Host, ".")

	pod, err := n.dial(r.Context(), c, name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)

		return
	}

	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	}

	if err != nil {
		_ = pod.Close()

		return
	}

	pipe(conn, pod)
}

// dial connects to a pod of a Service.
func (n *network) dial(ctx context.Context, c *cluster, name string) (net.Conn, error) {
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: name}, service); err != nil {
		return nil, err
	}

	p := n.selected(service)
	if p == nil {
		return nil, fmt.Errorf("no pod of Service %q runs: %w", name, world.ErrOther)
	}

	return (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
}

// serveIP serves the IP of a Service until the test ends.
func (n *network) serveIP(t *testing.T, c *cluster, name string) {
	t.Helper()

	service := &corev1.Service{}

	world.Eventually(t, "Service "+name, func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: name}, service)
	})

	at := fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
	if _, known := n.ips.LoadOrStore(at, true); known {
		return
	}

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })

	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // Closed.
			}

			go n.forward(context.WithoutCancel(t.Context()), c, name, conn)
		}
	}()
}

func (n *network) forward(ctx context.Context, c *cluster, name string, conn net.Conn) {
	pod, err := n.dial(ctx, c, name)
	if err != nil {
		_ = conn.Close()

		return
	}

	pipe(conn, pod)
}

// pipe passes on what either side says, until one hangs up.
func pipe(a, b net.Conn) {
	done := make(chan struct{}, 2)

	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}

	<-done

	_ = a.Close()
	_ = b.Close()
}
