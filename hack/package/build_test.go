// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const testVersion = "v1.2.3-rc.1"

// small makes a repository with our packages and programs that do nothing, and
// builds it.
func small(t *testing.T) (string, string) {
	t.Helper()

	root, dist := t.TempDir(), t.TempDir()

	for path, text := range map[string]string{
		"go.mod":                         "module example.org/small\n\ngo 1.26\n",
		"cmd/kubectl-kausality/main.go":  "package main\n\nfunc main() {}\n",
		"cmd/function-kausality/main.go": "package main\n\nfunc main() {}\n",
		"cmd/kausality-manager/main.go":  "package main\n\nvar version = \"\"\n\nfunc main() { println(version) }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o750); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.CopyFS(filepath.Join(root, "package"), os.DirFS("../../package")); err != nil {
		t.Fatal(err)
	}

	b := &build{
		Root: root, Out: dist, Version: testVersion, Arch: []string{"amd64", "arm64"}, DateEpoch: 1700000000, Revision: "abc", Repository: home,
	}
	if err := b.Run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}

	return root, dist
}

// sums are the checksums of all files in a directory.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()

	out := map[string][32]byte{}

	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		raw, err := os.ReadFile(filepath.Join(dir, path))
		out[path] = sha256.Sum256(raw)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func TestTwoBuildsAreTheSameBytes(t *testing.T) {
	t.Parallel()

	_, one := small(t)
	_, two := small(t)

	a, b := sums(t, one), sums(t, two)
	if len(a) < 10 || !maps.Equal(a, b) {
		t.Errorf("One build made %q, the other one %q", slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))

		for path, sum := range a {
			if b[path] != sum {
				t.Errorf("%s differs", path)
			}
		}
	}
}

func TestWhatIsPushedIsOneImagePerArchitectureWithItsPackage(t *testing.T) {
	t.Parallel()

	_, dist := small(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)

	repository := strings.TrimPrefix(server.URL, "http://") + "/kausality-io"
	if err := (&push{Dist: dist, Repository: repository}).Run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}

	for _, image := range []string{function, provider, manager, plugin} {
		for _, arch := range []string{"amd64", "arm64"} {
			ref, err := name.ParseReference(repository + "/" + image + ":" + testVersion)
			if err != nil {
				t.Fatal(err)
			}

			img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
			if err != nil {
				t.Fatal(err)
			}

			checkRuntime(t, img, arch)
			checkAnnotation(t, img, image == function || image == provider)
		}
	}
}

// checkRuntime checks that an image runs our program as nobody, and has no shell.
func checkRuntime(t *testing.T, img v1.Image, arch string) {
	t.Helper()

	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}

	if cfg.Architecture != arch || cfg.OS != "linux" || cfg.Config.User != "65532:65532" || cfg.Created.Unix() != 1700000000 {
		t.Errorf("%s/%s of %s as %s", cfg.OS, cfg.Architecture, cfg.Created, cfg.Config.User)
	}

	raw := mutate.Extract(img)

	defer func() { _ = raw.Close() }()

	var executable []string

	for r := tar.NewReader(raw); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}

		if h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0 {
			executable = append(executable, "/"+h.Name)
		}
	}

	if !slices.Equal(executable, cfg.Config.Entrypoint) {
		t.Errorf("Executable are %q, and it runs %q", executable, cfg.Config.Entrypoint)
	}
}

// checkAnnotation checks that one layer is marked as the package, if there is one.
func checkAnnotation(t *testing.T, img v1.Image, want bool) {
	t.Helper()

	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}

	got := slices.ContainsFunc(m.Layers, func(l v1.Descriptor) bool {
		return l.Annotations[xpkg.AnnotationKey] == xpkg.PackageAnnotation
	})
	if got != want {
		t.Errorf("Layers %+v; a package among them: %t", m.Layers, want)
	}
}

func TestPackagesPassTheLintersOfCrossplane(t *testing.T) {
	t.Parallel()

	_, dist := small(t)

	cases := map[string]struct {
		linter  parser.Linter
		objects int
	}{
		configuration + ".xpkg":  {linter: xpkg.NewConfigurationLinter()},
		function + "-amd64.xpkg": {linter: xpkg.NewFunctionLinter(), objects: 1},
		function + "-arm64.xpkg": {linter: xpkg.NewFunctionLinter(), objects: 1},
		provider + "-amd64.xpkg": {linter: xpkg.NewProviderLinter(), objects: 6},
		provider + "-arm64.xpkg": {linter: xpkg.NewProviderLinter(), objects: 6},
	}

	for path, tc := range cases {
		t.Run(path, func(t *testing.T) {
			t.Parallel()

			pkg := contents(t, filepath.Join(dist, path))
			if err := tc.linter.Lint(pkg); err != nil {
				t.Error(err)
			}

			if got := len(pkg.GetObjects()); got != tc.objects {
				t.Errorf("It carries %d objects, want %d", got, tc.objects)
			}
		})
	}
}

// contents reads the manifests of a package file.
func contents(t *testing.T, path string) *parser.Package {
	t.Helper()

	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}

	meta, err := xpkg.BuildMetaScheme()
	if err != nil {
		t.Fatal(err)
	}

	objects, err := xpkg.BuildObjectScheme()
	if err != nil {
		t.Fatal(err)
	}

	raw := mutate.Extract(img)

	defer func() { _ = raw.Close() }()

	for r := tar.NewReader(raw); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", xpkg.StreamFile, path, err)
		}

		if h.Name != xpkg.StreamFile {
			continue
		}

		pkg, err := parser.New(meta, objects).Parse(t.Context(), io.NopCloser(r))
		if err != nil {
			t.Fatal(err)
		}

		return pkg
	}
}

func TestAPackageThatCrossplaneWouldRefuseIsNotBuilt(t *testing.T) {
	t.Parallel()

	root, _ := small(t)
	role := filepath.Join(root, "package", "crds", "role.yaml")

	const text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"
	if err := os.WriteFile(role, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	b := &build{Root: root, Version: testVersion}
	if _, err := b.pack(t.Context(), provider, b.configured(empty.Image)); err == nil {
		t.Error("A Provider with a ClusterRole was built")
	}
}

func TestAVersionIsATagThatCrossplaneCanCompare(t *testing.T) {
	t.Parallel()

	for v, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-0.20261121143031-529e412479c9": true,
		"1.2.3": false, "v1.2": false, "v1.2.3+dirty": false, "dev": false, "v01.2.3": false,
	} {
		if got := validVersion(v); got != want {
			t.Errorf("validVersion(%q) = %t", v, got)
		}
	}
}
