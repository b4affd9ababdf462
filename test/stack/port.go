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
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// loopback is the only address anything of the stack listens on.
const loopback = "127.0.0.1"

// address of a port on the loopback interface.
func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// ports says who listens where.
type ports struct {
	etcdClient, etcdPeer                          int
	apiServer                                     int
	controllerManager                             int
	crossplaneMetrics, crossplaneHealth           int
	patchAndTransform, autoReady                  int
	providerWebhook, providerHealth               int
	nopWebhook                                    int
	postgreSQL, providerPostgreSQL                int
	function                                      int
	managerWebhook, managerHealth, managerMetrics int
}

// newPorts finds a port for everybody.
func newPorts() (ports, error) {
	p := ports{}
	all := []*int{
		&p.etcdClient, &p.etcdPeer, &p.apiServer, &p.controllerManager,
		&p.crossplaneMetrics, &p.crossplaneHealth, &p.patchAndTransform, &p.autoReady,
		&p.providerWebhook, &p.providerHealth, &p.nopWebhook, &p.postgreSQL, &p.providerPostgreSQL,
		&p.function, &p.managerWebhook, &p.managerHealth, &p.managerMetrics,
	}
	free, err := freePorts(len(all))
	if err != nil {
		return p, err
	}
	for i, port := range all {
		*port = free[i]
	}
	return p, nil
}

// freePorts asks the kernel for n free ports, all different, which it gives to
// nobody else for the next minute. A server that listens with SO_REUSEADDR, as
// all of Go's do, can listen there at once.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		port, err := freePort()
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// freePort leaves a closed connection in TIME_WAIT at the port: the kernel does
// not choose such a port, neither for a listener nor for a client.
func freePort() (int, error) {
	l, err := net.Listen("tcp", address(0)) //nolint:noctx // Does not block.
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // The listener's queue takes it at once.
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	if err != nil {
		return 0, fmt.Errorf("accept: %w", err)
	}
	// Who closes first keeps the port; that must be the listener's side, and
	// the client's must not be closed before it knows.
	if err := server.Close(); err != nil {
		return 0, fmt.Errorf("close: %w", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("wait for the end of the connection: %w", err)
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("unexpected address %s", l.Addr())
	}
	return tcp.Port, nil
}
