// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// sources are where the metadata of the packages is, and then the CRDs that they
// carry, below the directory package.
func sources(name string) []string {
	return map[string][]string{
		function:      {"function/crossplane.yaml", "input/*.yaml"},
		provider:      {"provider/crossplane.yaml", "crds/*.yaml"},
		configuration: {"configuration/crossplane.yaml"},
	}[name]
}

// pack makes a package of an image: it adds a layer with all the package's
// manifests, linted by Crossplane's rules, that is annotated for Crossplane to
// find. crossplane xpkg build does the same, one architecture at a time and from a
// tarball of the image: it would have to be built, and given all of that.
func (b *build) pack(ctx context.Context, name string, base v1.Image) (v1.Image, error) {
	text, err := b.manifests(name)
	if err != nil {
		return nil, err
	}

	meta, err := xpkg.BuildMetaScheme()
	if err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	objects, err := xpkg.BuildObjectScheme()
	if err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	builder := xpkg.New(parser.NewEchoBackend(text), noExamples{}, parser.New(meta, objects), nil)

	img, _, err := builder.Build(ctx, xpkg.WithBase(base))
	if err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	cfg = cfg.DeepCopy()
	// The layer has been added by somebody who knows no time.
	cfg.History[len(cfg.History)-1] = v1.History{Created: b.created(), CreatedBy: "package"}

	cfg.Config.Labels = maps.Clone(cfg.Config.Labels)
	maps.Copy(cfg.Config.Labels, b.titled(name))

	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	if img, err = xpkg.AnnotateLayers(img); err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", name, err)
	}

	return img, nil
}

// manifests returns all manifests of a package as one text.
func (b *build) manifests(name string) (string, error) {
	text := &bytes.Buffer{}

	for _, pattern := range sources(name) {
		paths, err := filepath.Glob(filepath.Join(b.Root, "package", filepath.FromSlash(pattern)))
		if err != nil || len(paths) == 0 {
			return "", fmt.Errorf("cannot find manifests %q of %q: %w", pattern, name, cmpErr(err))
		}

		slices.Sort(paths)

		for _, path := range paths {
			manifest, err := os.ReadFile(path) //nolint:gosec // Of this repository.
			if err != nil {
				return "", fmt.Errorf("cannot pack %q: %w", name, err)
			}

			fmt.Fprintf(text, "---\n%s\n", manifest)
		}
	}

	return text.String(), nil
}

func cmpErr(err error) error {
	if err != nil {
		return err
	}

	return os.ErrNotExist
}

// noExamples is for packages that carry none.
type noExamples struct{}

// Init says so.
func (noExamples) Init(context.Context, ...parser.BackendOption) (io.ReadCloser, error) {
	return io.NopCloser(&bytes.Buffer{}), os.ErrNotExist
}

// version is a semantic version that can be a tag, so without build metadata.
var version = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func validVersion(v string) bool { return version.MatchString(v) }
