// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/internal/manifest"
)

// stdinName stands for standard input, and stdinFile is what is said of it.
const (
	stdinName = "-"
	stdinFile = "stdin"
)

// readManifests reads the objects of files and directories, in the order in which these
// are named, each file once. The error is of all files, and documents of them, that cannot
// be read; all others are returned.
func readManifests(names []string, in io.Reader) ([]*manifest.Object, error) {
	var (
		out  []*manifest.Object
		errs []error
	)

	seen := map[string]bool{}

	for _, name := range names {
		files, err := manifestFiles(name)
		errs = append(errs, err)

		for _, file := range files {
			if seen[filepath.Clean(file)] {
				continue
			}

			seen[filepath.Clean(file)] = true

			objects, err := readManifest(file, in)
			out, errs = append(out, objects...), append(errs, err)
		}
	}

	return out, errors.Join(errs...)
}

// manifestFiles are the files that a name stands for, ordered.
func manifestFiles(name string) ([]string, error) {
	if name == stdinName {
		return []string{name}, nil
	}

	var out []string

	err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case path == name || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			out = append(out, path)
		}

		return nil
	})
	if err != nil {
		return out, fmt.Errorf("cannot read %s: %w", name, err)
	}

	return out, nil
}

// readManifest reads the objects of one file.
func readManifest(file string, in io.Reader) ([]*manifest.Object, error) {
	if file == stdinName {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}

		return manifest.Read(stdinFile, text)
	}

	text, err := os.ReadFile(file) //nolint:gosec // It is the user who names it.
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}

	return manifest.Read(filepath.ToSlash(file), text)
}
