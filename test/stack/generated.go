// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// assetSource is the directory beside a generated tool's binary with its sources, at their path in the repository:
// those of the tree and those that were generated. The linters read them there.
const assetSource = "source"

// postgreSQLTool is the provider for PostgreSQL, made with upjet. Its code is generated for the most part.
func postgreSQLTool() tool {
	return tool{name: providerPostgreSQL, dir: "test/upjet", script: "generate.sh"}
}

// ProviderPostgreSQL builds the provider for PostgreSQL and returns its directory, which has its binary, its
// CustomResourceDefinitions in crds, and its sources in source. Progress goes to standard error.
func ProviderPostgreSQL(ctx context.Context) (string, error) {
	built, err := build(ctx, os.Stderr, []tool{postgreSQLTool()})
	return built[providerPostgreSQL], err
}

// A source is one file that a tool is generated from.
type source struct {
	// path relative to the directory of the tool, with slashes.
	path    string
	content []byte
}

// readSources returns all files below a directory in the order of their paths, without hidden ones, which editors leave.
func readSources(dir string) ([]source, error) {
	var sources []source
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != "."; {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		content, err := fs.ReadFile(files, path)
		sources = append(sources, source{path: path, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read sources in %q: %w", dir, err)
	}
	return sources, nil
}

// generatedKey is cacheKey of a generated tool: each of its sources decides what comes out, its script for one.
func generatedKey(t tool, goVersion, platform string, sources []source) string {
	h := keyHash{sha256.New()}
	h.add(goVersion, platform, t.dir, t.script, assetSource)
	for _, s := range sources {
		h.add(s.path, string(s.content))
	}
	return h.key()
}

// generate has the tool's script write dir. It runs in a copy of the sources that the key is of: it sees no other
// files of the tree, and it writes none.
func (p pending) generate(ctx context.Context, dir string) error {
	to := filepath.Join(dir, assetSource, filepath.FromSlash(p.dir))
	for _, s := range p.sources {
		path := filepath.Join(to, filepath.FromSlash(s.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cannot copy %q: %w", s.path, err)
		}
		if err := os.WriteFile(path, s.content, 0o644); err != nil {
			return fmt.Errorf("cannot copy %q: %w", s.path, err)
		}
	}
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(to, p.script), dir)
	// Together with what it has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("cannot run %s/%s: %w\n%s", p.dir, p.script, err, lastLines(output.String()))
	}
	if _, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
		return fmt.Errorf("cannot find what %s/%s has built: %w", p.dir, p.script, err)
	}
	return nil
}
