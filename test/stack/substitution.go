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
	"os"
	"path/filepath"
	"strings"
)

// A substitution is one change to the source of a tool or of something it depends on, for what the
// tool has no flag for.
type substitution struct {
	// module and file say where: a module path, and a path below that module's directory.
	module, file string

	// old must be in the file exactly once; new takes its place.
	old, new string
}

// apply returns src with the change made. It fails unless there is exactly one place for it, so that
// a new version of the tool cannot silently lose the change.
func (s substitution) apply(src string) (string, error) {
	if n := strings.Count(src, s.old); n != 1 {
		return "", fmt.Errorf("cannot substitute in %s/%s: %q is there %d times, not once", s.module, s.file, s.old, n)
	}
	return strings.Replace(src, s.old, s.new, 1), nil
}

// substituted writes copies of the modules to change into dir, and a go.mod that puts them in the place
// of the originals, for `go build -modfile`. (Its -overlay refuses files of the module cache.)
func (g goCommand) substituted(ctx context.Context, dir string, subs []substitution) (modfile string, err error) {
	modfile = filepath.Join(dir, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			return "", fmt.Errorf("cannot copy pins: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return "", fmt.Errorf("cannot copy pins: %w", err)
		}
	}
	copies := map[string]string{}
	for _, s := range subs {
		if copies[s.module] == "" {
			copies[s.module] = filepath.Join(dir, fmt.Sprintf("module%d", len(copies)))
			if err := g.replace(ctx, modfile, s.module, copies[s.module]); err != nil {
				return "", err
			}
		}
		if err := s.applyTo(filepath.Join(copies[s.module], filepath.FromSlash(s.file))); err != nil {
			return "", err
		}
	}
	return modfile, nil
}

// replace copies a module to a directory and has modfile use it.
func (g goCommand) replace(ctx context.Context, modfile, module, to string) error {
	from, err := g.moduleDir(ctx, module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("cannot copy module %q: %w", module, err)
	}
	_, err = g.run(ctx, "mod", "edit", "-replace="+module+"="+to, modfile)
	return err
}

// applyTo makes the change to a file.
func (s substitution) applyTo(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot substitute: %w", err)
	}
	changed, err := s.apply(string(src))
	if err != nil {
		return err
	}
	// Removed first: the copy is read-only, as the module cache is.
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot substitute: %w", err)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		return fmt.Errorf("cannot substitute: %w", err)
	}
	return nil
}
