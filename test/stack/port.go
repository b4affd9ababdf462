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
	"fmt"
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
	function                                      int
	managerWebhook, managerHealth, managerMetrics int
}

// newPorts finds a port for everybody.
func newPorts() (ports, error) {
	p := ports{}
	all := []*int{
		&p.etcdClient, &p.etcdPeer, &p.apiServer, &p.controllerManager,
		&p.crossplaneMetrics, &p.crossplaneHealth, &p.patchAndTransform, &p.autoReady,
		&p.providerWebhook, &p.providerHealth,
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

// freePorts asks the kernel for n free ports, all different.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	listeners := make([]net.Listener, 0, n)
	// Closed only when all are found, so that none is found twice.
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", address(0)) //nolint:noctx // Does not block.
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		listeners = append(listeners, l)
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("cannot find a free port: unexpected address %s", l.Addr())
		}
		ports = append(ports, tcp.Port)
	}
	return ports, nil
}
