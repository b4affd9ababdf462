// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Versions of the packages.
const (
	oldVersion = "v0.1.0-0.20261121143031-529e412479c9"
	newVersion = "v0.2.0"
)

// release is one version of our packages.
type release struct {
	version, dist, tool string
	// install is its install.yaml, once it was pushed.
	install []byte
}

// builds are what is built: our packages in both versions as `make package` does,
// but for this machine only, and the plugin of kubectl.
type builds struct {
	older, newer *release
	plugin       string

	done chan error
}

// build builds the older packages, and returns while it builds the rest.
func build(t *testing.T) *builds {
	t.Helper()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	tmp := t.TempDir()
	tool := filepath.Join(tmp, "package")
	b := &builds{plugin: filepath.Join(tmp, "kubectl-kausality"), done: make(chan error, 1)}

	command(t, "go", "build", "-C", filepath.Join(root, "hack", "package"), "-o", tool, ".")

	pack := func(v string) (*release, error) {
		r := &release{version: v, dist: filepath.Join(tmp, v), tool: tool}

		return r, run(t.Context(), tool, "build", "--root", root, "--out", r.dist, "--version", v, "--arch", runtime.GOARCH)
	}

	if b.older, err = pack(oldVersion); err != nil {
		t.Fatal(err)
	}

	go func() {
		err := run(t.Context(), "go", "build", "-C", root, "-o", b.plugin, "./cmd/kubectl-kausality")
		if err == nil {
			b.newer, err = pack(newVersion)
		}

		b.done <- err
	}()

	t.Cleanup(func() { b.wait(t) })

	return b
}

// wait waits until all is built.
func (b *builds) wait(t *testing.T) {
	t.Helper()

	err := <-b.done
	b.done <- err // For who waits later.

	if err != nil && t.Context().Err() == nil {
		t.Fatal(err)
	}
}

// registryOf starts a registry, and returns a repository there.
func registryOf(t *testing.T) string {
	t.Helper()

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	return strings.TrimPrefix(server.URL, "http://") + "/kausality-io"
}

// settle is a flag of the manager's, which a test cannot wait for as long as it
// does by itself: all of install.yaml that is not as it was written.
const settle = "--settle=1s"

// push pushes all of it as `make package-push` does.
func (r *release) push(t *testing.T, repository string) {
	t.Helper()

	command(t, r.tool, "push", "--dist", r.dist, repository)

	const container = "          - name: package-runtime\n"

	install := string(read(t, filepath.Join(r.dist, "install.yaml")))
	r.install = []byte(strings.Replace(install, container, container+"            args: ["+settle+"]\n", 1))
}

func command(t *testing.T, path string, args ...string) {
	t.Helper()

	if err := run(t.Context(), path, args...); err != nil {
		t.Fatal(err)
	}
}

func run(ctx context.Context, path string, args ...string) error {
	if said, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", path, args, err, said)
	}

	return nil
}

// unpacked takes the program out of an image, and returns a path to run it by.
func unpacked(t *testing.T, image string) string {
	t.Helper()

	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}

	img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		t.Fatal(err)
	}

	cfg, err := img.ConfigFile()
	if err != nil || len(cfg.Config.Entrypoint) != 1 {
		t.Fatalf("%+v: %v", cfg, err)
	}

	raw := mutate.Extract(img)

	defer func() { _ = raw.Close() }()

	path := filepath.Join(t.TempDir(), filepath.Base(cfg.Config.Entrypoint[0]))

	for r := tar.NewReader(raw); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", cfg.Config.Entrypoint[0], image, err)
		}

		if "/"+h.Name != cfg.Config.Entrypoint[0] {
			continue
		}

		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			t.Fatal(err)
		}

		_, err = io.Copy(f, r)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}

		return path
	}
}
