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
	"os"
	osuser "os/user"
	"strconv"
	"syscall"
)

// A credential is a user that a process runs as; nil is whoever starts it.
type credential struct{ uid, gid uint32 }

// unprivileged returns whom a program runs as that refuses to be run by root: nil where we are not root.
func unprivileged() (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // As ourselves.
	}
	u, err := osuser.Lookup(PostgreSQLAdmin) // Made by the package of the server.
	if err != nil {
		u, err = osuser.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find a user to run as: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot run as %q: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot run as %q: %w", u.Username, err)
	}
	return &credential{uid: uint32(uid), gid: uint32(gid)}, nil
}

// own gives a file to the user.
func (c *credential) own(path string) error {
	if c == nil {
		return nil
	}
	return os.Chown(path, int(c.uid), int(c.gid))
}

// attributes has a process run as the user.
func (c *credential) attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	if c != nil {
		a.Credential = &syscall.Credential{Uid: c.uid, Gid: c.gid}
	}
	return a
}
