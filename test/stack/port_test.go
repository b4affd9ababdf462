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
	"net"
	"slices"
	"testing"
)

// Several stacks start beside each other, and every client takes ports too.
func TestNobodyElseGetsAPortThatWasFound(t *testing.T) {
	found, err := freePorts(300)
	if err != nil {
		t.Fatal(err)
	}

	taken := make([]net.Listener, 0, 3000)

	defer func() {
		for _, l := range taken {
			_ = l.Close()
		}
	}()

	for range cap(taken) {
		l, err := net.Listen("tcp", address(0)) //nolint:noctx // Does not block.
		if err != nil {
			t.Fatal(err)
		}

		taken = append(taken, l)

		if tcp, ok := l.Addr().(*net.TCPAddr); !ok || slices.Contains(found, tcp.Port) {
			t.Fatalf("the kernel gave %s to somebody else", l.Addr())
		}
	}

	for _, port := range found {
		l, err := net.Listen("tcp", address(port)) //nolint:noctx // Does not block.
		if err != nil {
			t.Fatalf("whom it was found for cannot use it: %v", err)
		}

		_ = l.Close()
	}
}
