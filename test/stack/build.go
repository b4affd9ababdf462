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
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Tools says where the built tools are: the directory of each, by the name of its binary.
type Tools map[string]string

// Binary returns the path of a tool's binary.
func (t Tools) Binary(name string) string { return filepath.Join(t[name], name) }

// asset returns the path of a directory kept beside a tool's binary.
func (t Tools) asset(name, dir string) string { return filepath.Join(t[name], dir) }

// Build builds the tools of a stack that the cache does not have, and says so on out.
func Build(ctx context.Context, out io.Writer, o Options) (Tools, error) {
	want := o.tools()
	if !o.KubectlOfPath {
		return build(ctx, out, want)
	}
	dir := kubectlOfPath(ctx, out)
	if dir != "" {
		want = slices.DeleteFunc(want, func(t tool) bool { return t.name == kubectl })
	}
	built, err := build(ctx, out, want)
	if err == nil && dir != "" {
		built[kubectl] = dir
	}
	return built, err
}

// A pending tool is one to be in the cache.
type pending struct {
	tool

	key string
	cmd goCommand

	// sources of a tool that a script builds.
	sources []source
}

// build builds those of the tools that the cache does not have.
func build(ctx context.Context, out io.Writer, want []tool) (Tools, error) {
	c, err := newCache()
	if err != nil {
		return nil, err
	}
	all, err := keyed(ctx, want)
	if err != nil {
		return nil, err
	}
	built, err := kubebuilder(ctx, out, all)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p pending) bool { return built[p.name] != "" })
	var missing []pending
	for _, p := range all {
		built[p.name] = c.entry(p.name, p.key)
		if !c.has(p.name, p.key) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		_, _ = fmt.Fprintf(out, "all %d tools are built\n", len(all))
		return built, nil
	}
	_, _ = fmt.Fprintf(out, "building tools into %s (only once, some minutes)\n", c.dir)
	for i, p := range missing {
		if err := c.build(ctx, out, fmt.Sprintf("[%d/%d]", i+1, len(missing)), p); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// keyed returns the tools with their keys.
func keyed(ctx context.Context, want []tool) ([]pending, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	goVersion, err := goCommand{dir: root}.run(ctx, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	all := make([]pending, 0, len(want))
	for _, t := range want {
		p, err := t.keyed(root, goVersion, runtime.GOOS+"/"+runtime.GOARCH)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// keyed returns the tool with its key.
func (t tool) keyed(root, goVersion, platform string) (pending, error) {
	if t.script != "" {
		sources, err := readSources(filepath.Join(root, filepath.FromSlash(t.dir)))
		return pending{tool: t, key: generatedKey(t, goVersion, platform, sources), sources: sources}, err
	}
	dir := filepath.Join(root, "test", "stack", "modules", t.dir)
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return pending{}, fmt.Errorf("cannot read pins of %q: %w", t.name, err)
	}
	goSum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return pending{}, fmt.Errorf("cannot read pins of %q: %w", t.name, err)
	}
	key := cacheKey(t, goVersion, platform, string(goMod), string(goSum))
	return pending{tool: t, key: key, cmd: goCommand{dir: dir}}, nil
}

// build builds one tool into the cache, and says how long it took.
func (c cache) build(ctx context.Context, out io.Writer, progress string, p pending) error {
	name, fill := p.name, func(dir string) error { return p.generate(ctx, dir) }
	if p.script == "" {
		version, err := p.cmd.list(ctx, p.module, "{{.Version}}")
		if err != nil {
			return err
		}
		name += " " + version
		fill = func(dir string) error { return p.build(ctx, dir, version) }
	}
	_, _ = fmt.Fprintf(out, "%s building %s ...", progress, name)
	start := time.Now()
	if err := c.add(ctx, p.name, p.key, fill); err != nil {
		_, _ = fmt.Fprintln(out, " failed")
		return fmt.Errorf("cannot build %q: %w", p.name, err)
	}
	_, _ = fmt.Fprintf(out, " (%s)\n", time.Since(start).Round(time.Second))
	return nil
}

// build builds the tool into dir, and copies its assets there.
func (p pending) build(ctx context.Context, dir, version string) error {
	ldflags := "-s -w " + strings.ReplaceAll(p.ldflags, "$VERSION", version)
	args := []string{"-ldflags", ldflags, p.pkg}
	if len(p.substitutions) > 0 {
		tmp, err := os.MkdirTemp("", "kausality-substitutions-*")
		if err != nil {
			return fmt.Errorf("cannot substitute: %w", err)
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		modfile, err := p.cmd.substituted(ctx, tmp, p.substitutions)
		if err != nil {
			return err
		}
		args = slices.Insert(args, 0, "-modfile", modfile)
	}
	if err := p.cmd.build(ctx, filepath.Join(dir, p.name), args...); err != nil {
		return err
	}
	return p.copyAssets(ctx, dir)
}

// copyAssets copies the tool's assets, so that they outlive the module cache.
func (p pending) copyAssets(ctx context.Context, dir string) error {
	if len(p.assets) == 0 {
		return nil
	}
	moduleDir, err := p.cmd.moduleDir(ctx, p.module)
	if err != nil {
		return err
	}
	for to, from := range p.assets {
		src := os.DirFS(filepath.Join(moduleDir, filepath.FromSlash(from)))
		if err := os.CopyFS(filepath.Join(dir, to), src); err != nil {
			return fmt.Errorf("cannot copy %s: %w", from, err)
		}
	}
	return nil
}
