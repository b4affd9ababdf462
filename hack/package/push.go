// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// push pushes everything.
type push struct {
	Dist       string `default:"dist" help:"Directory that was built into."                                                     type:"existingdir"`
	Repository string `arg:""         help:"Registry and organization, such as registry.example.org/kausality-io. Docker's credentials are used."`
}

// Run pushes all images of the layout under their names and versions, and has
// install.yaml say where they are.
func (p *push) Run(ctx context.Context, out io.Writer) error {
	if err := validRepository(p.Repository); err != nil {
		return err
	}

	index, err := layout.ImageIndexFromPath(filepath.Join(p.Dist, layoutDir))
	if err != nil {
		return fmt.Errorf("cannot read images: %w", err)
	}

	all, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("cannot read images: %w", err)
	}

	for i := range all.Manifests {
		ref, err := name.ParseReference(p.Repository + "/" + all.Manifests[i].Annotations[refName])
		if err != nil {
			return fmt.Errorf("cannot push to %q: %w", p.Repository, err)
		}

		if err := write(ctx, index, &all.Manifests[i], ref); err != nil {
			return fmt.Errorf("cannot push %q: %w", ref, err)
		}

		if _, err := fmt.Fprintf(out, "%s@%s\n", ref, all.Manifests[i].Digest); err != nil {
			return fmt.Errorf("cannot say what was pushed: %w", err)
		}
	}

	return reinstall(p.Dist, p.Repository)
}

// write writes one of the images of an index.
func write(ctx context.Context, from v1.ImageIndex, what *v1.Descriptor, to name.Reference) error {
	opts := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}

	if what.MediaType == types.OCIImageIndex {
		index, err := from.ImageIndex(what.Digest)
		if err != nil {
			return err
		}

		return remote.WriteIndex(to, index, opts...)
	}

	img, err := from.Image(what.Digest)
	if err != nil {
		return err
	}

	return remote.Write(to, img, opts...)
}
