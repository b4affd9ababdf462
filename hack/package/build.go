// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// The packages.
const (
	function      = "function-kausality"
	provider      = "provider-kausality"
	configuration = "configuration-kausality"
	manager       = "kausality-manager"

	// plugin is in no package: hooks of other systems run it.
	plugin = "kubectl-kausality"
)

// build builds everything.
type build struct {
	Root       string   `default:"."           help:"Root of the repository."                                                 type:"existingdir"`
	Out        string   `default:"dist"        help:"Directory to build into. What an earlier build left there is replaced."`
	Version    string   `help:"Version of the packages, a semantic version with a leading v."                                 required:""`
	Arch       []string `default:"amd64,arm64" help:"Architectures, all of Linux."`
	Revision   string   `help:"Commit it is built from."`
	Repository string   `default:"${home}" help:"Registry and organization that everything will be pushed to, as install.yaml has to say."`
	DateEpoch  int64    `env:"SOURCE_DATE_EPOCH" help:"When all of it is said to be made, in seconds since 1970: that of the commit."`
}

// errVersion is why a version is refused: Crossplane finds dependencies by it.
var errVersion = errors.New("give a semantic version such as v1.2.3")

// Run builds the programs, images and packages, and says what there is.
func (b *build) Run(ctx context.Context, out io.Writer) error {
	if !validVersion(b.Version) {
		return fmt.Errorf("cannot use version %q: %w", b.Version, errVersion)
	}

	if err := validRepository(b.Repository); err != nil {
		return err
	}

	// 1. An image of each program that runs in a cluster.
	runtimes, err := b.runtimes(ctx)
	if err != nil {
		return err
	}

	// 2. Their packages, and one that has no program.
	packages := map[string]map[string]v1.Image{function: {}, provider: {}}

	for name, program := range map[string]string{function: function, provider: manager} {
		for arch, base := range runtimes[program] {
			if packages[name][arch], err = b.pack(ctx, name, base); err != nil {
				return err
			}
		}
	}

	alone, err := b.pack(ctx, configuration, b.configured(empty.Image))
	if err != nil {
		return err
	}

	// 3. All of them as files.
	w, err := b.writer(out)
	if err != nil {
		return err
	}

	return errors.Join(
		w.packages(packages, alone),
		w.images(map[string]map[string]v1.Image{
			function: packages[function], provider: packages[provider], manager: runtimes[manager], plugin: runtimes[plugin],
		}, alone),
		w.install(b.Root, b.Repository),
	)
}

// runtimes makes the images of all programs, by architecture.
func (b *build) runtimes(ctx context.Context) (map[string]map[string]v1.Image, error) {
	tmp, err := os.MkdirTemp("", "kausality-package-*")
	if err != nil {
		return nil, fmt.Errorf("cannot build: %w", err)
	}

	defer func() { _ = os.RemoveAll(tmp) }()

	out := map[string]map[string]v1.Image{}

	for _, program := range []string{function, manager, plugin} {
		out[program] = map[string]v1.Image{}

		for _, arch := range b.Arch {
			if out[program][arch], err = b.runtime(ctx, tmp, program, arch); err != nil {
				return nil, err
			}
		}
	}

	return out, nil
}

// created is when all of it is said to be made.
func (b *build) created() v1.Time { return v1.Time{Time: time.Unix(b.DateEpoch, 0).UTC()} }

// writer empties the directory, but for what is not of ours.
func (b *build) writer(out io.Writer) (*writer, error) {
	old, err := filepath.Glob(filepath.Join(b.Out, "*.xpkg"))
	if err != nil {
		return nil, fmt.Errorf("cannot clear %q: %w", b.Out, err)
	}

	for _, path := range append(old, filepath.Join(b.Out, layoutDir), filepath.Join(b.Out, installFile), filepath.Join(b.Out, mirrorFile)) {
		if err := os.RemoveAll(path); err != nil {
			return nil, fmt.Errorf("cannot clear %q: %w", b.Out, err)
		}
	}

	path, err := layout.Write(filepath.Join(b.Out, layoutDir), mutate.IndexMediaType(empty.Index, indexType))
	if err != nil {
		return nil, fmt.Errorf("cannot make an image layout: %w", err)
	}

	return &writer{dir: b.Out, version: b.Version, layout: path, out: out}, nil
}

// titled says what an image is, for those who find it in a registry.
func (b *build) titled(title string) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  b.Version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/kausality-io/kausality-crossplane",
	}
	if b.Revision != "" {
		labels["org.opencontainers.image.revision"] = b.Revision
	}

	return labels
}
