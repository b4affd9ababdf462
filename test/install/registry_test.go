// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"archive/tar"
	"errors"
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

// version of the packages under test.
const version = "v0.1.0-0.20261121143031-529e412479c9"

// published builds our packages as `make package` does, for this machine only,
// and pushes them. It returns the registry with organization, and the directory
// they were built into.
func published(t *testing.T) (string, string) {
	t.Helper()

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	tmp := t.TempDir()
	tool, dist := filepath.Join(tmp, "package"), filepath.Join(tmp, "dist")
	mirror := strings.TrimPrefix(server.URL, "http://") + "/kausality-io"

	command(t, "go", "build", "-C", filepath.Join(root, "hack", "package"), "-o", tool, ".")
	command(t, tool, "build", "--root", root, "--out", dist, "--version", version, "--arch", runtime.GOARCH)
	command(t, tool, "push", "--dist", dist, mirror)

	return mirror, dist
}

func command(t *testing.T, path string, args ...string) {
	t.Helper()

	if said, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", path, args, err, said)
	}
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
