// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	indexType    = types.OCIImageIndex
	manifestType = types.OCIManifestSchema1

	// nonRoot is who a program runs as where nobody says; numeric, or a kubelet
	// cannot show that it is not root.
	nonRoot = 65532
)

// runtime makes the image of a program: a base layer and the program, a static
// binary, so there is no libc, no shell and no package manager. There are no CA
// certificates either: all of them verify their peers with CAs that they are
// given (the API server's, Crossplane's), and call nobody else. ko would compile the
// program as well, onto a base image that it pulls from a registry: this needs none.
func (b *build) runtime(ctx context.Context, tmp, program, arch string) (v1.Image, error) {
	binary, err := b.compile(ctx, tmp, program, arch)
	if err != nil {
		return nil, err
	}

	base, err := b.layer(baseFiles()...)
	if err != nil {
		return nil, err
	}

	own, err := b.layer(file{name: program, mode: 0o755, data: binary})
	if err != nil {
		return nil, err
	}

	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, manifestType), base, own)
	if err != nil {
		return nil, fmt.Errorf("cannot make the image of %q: %w", program, err)
	}

	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("cannot make the image of %q: %w", program, err)
	}

	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Created = "linux", arch, b.created()
	cfg.History = []v1.History{{Created: b.created(), CreatedBy: "base"}, {Created: b.created(), CreatedBy: program}}
	cfg.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", nonRoot, nonRoot),
		Env:          []string{"PATH=/"},
		Entrypoint:   []string{"/" + program},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"9443/tcp": {}, "8080/tcp": {}},
		Labels:       b.titled(program),
	}

	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, fmt.Errorf("cannot make the image of %q: %w", program, err)
	}

	return img, nil
}

// compile builds a program, which links to nothing.
func (b *build) compile(ctx context.Context, tmp, program, arch string) ([]byte, error) {
	path := filepath.Join(tmp, program+"-"+arch)
	ldflags := "-s -w -buildid= -X main.version=" + b.Version

	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", path, "./cmd/" + program}

	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Our names.
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")

	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build %q for %s: %w: %s", program, arch, err, said)
	}

	binary, err := os.ReadFile(path) //nolint:gosec // Just built.
	if err != nil {
		return nil, fmt.Errorf("cannot build %q for %s: %w", program, arch, err)
	}

	return binary, nil
}

// configured gives an image without a program the time it is made at.
func (b *build) configured(img v1.Image) v1.Image {
	out, err := mutate.CreatedAt(mutate.MediaType(img, manifestType), b.created())
	if err != nil {
		return img // Of an image in memory the configuration can always be read.
	}

	return out
}

// A file of an image.
type file struct {
	name string
	mode int64
	data []byte
	kind byte
}

// baseFiles are what a program may expect of a system: users that have names, and
// a place for temporary files.
func baseFiles() []file {
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/tmp:/sbin/nologin\n", nonRoot, nonRoot)

	return []file{
		{name: "etc/", mode: 0o755, kind: tar.TypeDir},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonRoot)},
		{name: "etc/nsswitch.conf", mode: 0o644, data: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{name: "tmp/", mode: 0o1777, kind: tar.TypeDir},
	}
}

// layer makes a layer, the same one of the same files.
func (b *build) layer(files ...file) (v1.Layer, error) {
	buf := &bytes.Buffer{}
	w := tar.NewWriter(buf)

	for _, f := range files {
		h := &tar.Header{
			Typeflag: f.kind, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: b.created().Time, Format: tar.FormatPAX,
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}

		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("cannot make a layer: %w", err)
		}

		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("cannot make a layer: %w", err)
		}
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot make a layer: %w", err)
	}

	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("cannot make a layer: %w", err)
	}

	return l, nil
}
