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
	"os/exec"
	"runtime"
)

// A launcher starts processes from one operating system thread that lives as long as the launcher.
// Linux kills a child with the thread that started it, not with the process (see PR_SET_PDEATHSIG in
// prctl(2) and https://go.dev/issue/27505), and Go's other threads may end at any time.
type launcher struct {
	jobs chan func()
}

// newLauncher returns a launcher; close ends its thread, and with it what it started.
func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// start starts a command in a process group of its own.
func (l *launcher) start(cmd *exec.Cmd, as *credential) error {
	cmd.SysProcAttr = as.attributes(ownGroup())
	started := make(chan error, 1)
	l.jobs <- func() { started <- cmd.Start() }
	return <-started
}

func (l *launcher) close() { close(l.jobs) }
