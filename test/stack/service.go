// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A service is one address for several servers, as a Service is with kube-proxy: it hands each
// connection to the next of them that is ready and takes it.
type service struct {
	listener net.Listener

	mu       sync.Mutex
	backends []backend
	next     int
	conns    map[net.Conn]bool
	closed   bool
	wg       sync.WaitGroup
}

// A backend is one server.
type backend struct {
	address string
	probe   Probe
}

// dialTimeout is how long a server on this machine may take to take a connection.
const dialTimeout = time.Second

func newService() (*service, error) {
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // Does not block.
	if err != nil {
		return nil, fmt.Errorf("cannot serve a service: %w", err)
	}
	s := &service{listener: l, conns: map[net.Conn]bool{}}
	s.wg.Go(s.serve)
	return s, nil
}

func (s *service) address() string { return s.listener.Addr().String() }

// add adds a server.
func (s *service) add(b backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = append(s.backends, b)
}

func (s *service) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // Closed.
		}
		s.wg.Go(func() { s.forward(conn) })
	}
}

// forward connects a client with a server until either hangs up.
func (s *service) forward(client net.Conn) {
	defer s.forget(client)
	server := s.dial()
	if server == nil {
		return
	}
	defer s.forget(server)
	if !s.keep(client, server) {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// dial connects to the next server that takes it; nil where none does.
func (s *service) dial() net.Conn {
	s.mu.Lock()
	s.next++
	start, backends := s.next, s.backends
	s.mu.Unlock()
	for i := range backends {
		b := backends[(start+i)%len(backends)]
		if b.probe.check(context.Background()) != nil {
			continue
		}
		conn, err := net.DialTimeout("tcp", b.address, dialTimeout) //nolint:noctx // Short.
		if err == nil {
			return conn
		}
	}
	return nil
}

// keep remembers connections, to end them; false where that is now.
func (s *service) keep(conns ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.conns[c] = true
	}
	return !s.closed
}

func (s *service) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	_ = conn.Close()
}

// close ends all connections.
func (s *service) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	_ = s.listener.Close()
	s.wg.Wait()
}
