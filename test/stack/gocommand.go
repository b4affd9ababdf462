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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A goCommand runs the go command in a directory.
type goCommand struct {
	dir string
}

// run runs it and returns what it prints to standard output.
func (g goCommand) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	// A go.work, a -mod flag or a platform of the caller is about something else.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("cannot run go %s in %s: %w\n%s", args[0], g.dir, err, lastLines(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// list returns one fact about a module the directory's module depends on; format is a template for the
// effective module, so after any replace.
func (g goCommand) list(ctx context.Context, module, format string) (string, error) {
	return g.run(ctx, "list", "-m", "-f", "{{with .Replace}}"+format+"{{else}}"+format+"{{end}}", module)
}

// moduleDir returns the directory of a module's files, after fetching them: a fresh machine knows a module
// by its go.mod alone, and then go list names no directory.
func (g goCommand) moduleDir(ctx context.Context, module string) (string, error) {
	if _, err := g.run(ctx, "mod", "download", module); err != nil {
		return "", err
	}
	return g.list(ctx, module, "{{.Dir}}")
}

// build builds packages to out: a file, or, where it ends in a separator, a directory.
func (g goCommand) build(ctx context.Context, out string, args ...string) error {
	_, err := g.run(ctx, append([]string{"build", "-trimpath", "-buildvcs=false", "-o", out}, args...)...)
	return err
}
