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
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the tests of a package against one stack, which it starts before and stops after them, also
// on Ctrl-C. When tests panic or time out, nothing of ours runs any more; the kernel then stops the
// stack (on Linux). Progress goes to standard error. The logs are removed when all tests pass, unless
// the options say where to put them. Use it as
//
//	func TestMain(m *testing.M) { os.Exit(stack.Main(m, stack.Options{}, &s)) }
func Main(tests interface{ Run() int }, o Options, s **Stack) (code int) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if o.Output == nil {
		o.Output = os.Stderr
	}
	if o.LogDir == "" && o.Dir == "" {
		dir, err := os.MkdirTemp("", "kausality-stack-logs-*")
		if err != nil {
			return fail(fmt.Errorf("cannot create log directory: %w", err))
		}
		o.LogDir = dir
		defer func() {
			if code == 0 {
				_ = os.RemoveAll(dir)
			}
		}()
	}
	started, err := Start(ctx, o)
	if err != nil {
		return fail(err)
	}
	*s = started
	// Tests do not know of Ctrl-C: without this they would go on, one failing after another.
	done := context.AfterFunc(ctx, func() {
		_ = started.Stop()
		os.Exit(fail(errors.New("interrupted")))
	})
	code = tests.Run()
	done()
	if code != 0 {
		fail(started.Err())
		fail(fmt.Errorf("the logs of the stack are in %s", started.LogDir()))
	}
	if err := started.Stop(); err != nil {
		return fail(err)
	}
	return code
}

// fail prints an error, and returns the exit code of a failure.
func fail(err error) int {
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "stack:", err)
	}
	return 1
}
