// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// What is in the directory beside the packages.
const (
	layoutDir   = "images"
	installFile = "install.yaml"
	mirrorFile  = "mirror.yaml"

	// refName is the annotation that distinguishes the images of a layout.
	refName = "org.opencontainers.image.ref.name"
)

// A writer writes files, and says which.
type writer struct {
	dir, version string
	layout       layout.Path
	out          io.Writer
}

// packages writes package files. There is one for each architecture, as a file
// holds one image, and as `crossplane xpkg push -f a,b` takes them.
func (w *writer) packages(all map[string]map[string]v1.Image, alone v1.Image) error {
	if err := w.pack(configuration, configuration, alone); err != nil {
		return err
	}

	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, arch := range slices.Sorted(maps.Keys(all[pkg])) {
			if err := w.pack(pkg, pkg+"-"+arch, all[pkg][arch]); err != nil {
				return err
			}
		}
	}

	return nil
}

func (w *writer) pack(pkg, stem string, img v1.Image) error {
	tag, err := name.NewTag(pkg + ":" + w.version)
	if err != nil {
		return fmt.Errorf("cannot write package %q: %w", stem, err)
	}

	path := filepath.Join(w.dir, stem+".xpkg")
	if err := tarball.WriteToFile(path, tag, img); err != nil {
		return fmt.Errorf("cannot write package %q: %w", stem, err)
	}

	return w.say(path, img.Digest)
}

// images writes an image layout with everything there is to push.
func (w *writer) images(all map[string]map[string]v1.Image, alone v1.Image) error {
	if err := w.layout.AppendImage(alone, w.named(configuration)); err != nil {
		return fmt.Errorf("cannot write image %q: %w", configuration, err)
	}

	if err := w.say(filepath.Join(w.dir, layoutDir)+" "+configuration, alone.Digest); err != nil {
		return err
	}

	for _, image := range slices.Sorted(maps.Keys(all)) {
		index := mutate.IndexMediaType(empty.Index, indexType)

		for _, arch := range slices.Sorted(maps.Keys(all[image])) {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: all[image][arch], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
			})
		}

		if err := w.layout.AppendIndex(index, w.named(image)); err != nil {
			return fmt.Errorf("cannot write image %q: %w", image, err)
		}

		if err := w.say(filepath.Join(w.dir, layoutDir)+" "+image, index.Digest); err != nil {
			return err
		}
	}

	return nil
}

func (w *writer) named(image string) layout.Option {
	return layout.WithAnnotations(map[string]string{refName: image + ":" + w.version})
}

// say says what there is now.
func (w *writer) say(what string, digest func() (v1.Hash, error)) error {
	d, err := digest()
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", what, err)
	}

	if _, err := fmt.Fprintf(w.out, "%-44s %s %s\n", what, w.version, d); err != nil {
		return fmt.Errorf("cannot say what was built: %w", err)
	}

	return nil
}
