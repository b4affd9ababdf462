// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Files are what scenarios are read from, by names with slashes. An embed.FS is one.
type Files interface {
	// ReadFile returns what a file holds. The error is fs.ErrNotExist where there is none.
	ReadFile(name string) ([]byte, error)
	// ReadDir returns what a directory holds, by name.
	ReadDir(name string) ([]fs.DirEntry, error)
}

// Disk are the files of this machine.
func Disk() Files { return disk{} }

type disk struct{}

// ReadFile reads a file.
func (disk) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.FromSlash(name))
}

// ReadDir reads a directory.
func (disk) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.FromSlash(name))
}

// Ending is that of the files that scenarios are in.
const Ending = ".txtar"

// errNoScenario is the cause where a directory holds none.
var errNoScenario = errors.New("there is no scenario in it, and none below it: that is a file *" + Ending)

// Place is where a scenario is.
type Place struct {
	// Root is the directory that was given: what a scenario names is not looked for above it.
	Root string
	// Path of the scenario's file, which begins with the root.
	Path string
}

// name is the path without its ending.
func (p Place) name() string { return strings.TrimSuffix(p.Path, Ending) }

// Find returns the scenarios in some directories and below them, by path. What begins with a
// dot is not looked into.
func Find(files Files, roots ...string) ([]Place, error) {
	var out []Place

	for _, root := range roots {
		root = path.Clean(filepath.ToSlash(root))
		before := len(out)

		if err := walk(files, root, func(name string) { out = append(out, Place{Root: root, Path: name}) }); err != nil {
			return nil, fmt.Errorf("cannot read directory %q: %w", root, err)
		}

		if len(out) == before {
			return nil, fmt.Errorf("cannot test directory %q: %w", root, errNoScenario)
		}
	}

	// Of a file that is below two of the directories, the upper one counts.
	slices.SortStableFunc(out, func(a, b Place) int {
		return cmp.Or(strings.Compare(a.name(), b.name()), len(a.Root)-len(b.Root))
	})

	return slices.CompactFunc(out, func(a, b Place) bool { return a.Path == b.Path }), nil
}

// walk visits the scenarios below a directory.
func walk(files Files, dir string, visit func(name string)) error {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		name := path.Join(dir, e.Name())

		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			if err := walk(files, name, visit); err != nil {
				return err
			}
		case path.Ext(e.Name()) == Ending:
			visit(name)
		}
	}

	return nil
}

// directories are those from that of the scenario up to the root, nearest first.
func (p Place) directories() []string {
	out := []string{path.Dir(p.Path)}

	for dir := out[0]; dir != p.Root && dir != path.Dir(dir); {
		dir = path.Dir(dir)
		out = append(out, dir)
	}

	return out
}

// isPath reports whether a name is a path, and not that of a file in base.
func isPath(name string) bool {
	return strings.Contains(name, "/") || slices.Contains([]string{".yaml", ".yml", ".json", Ending}, path.Ext(name))
}

// from is a name as it is meant in a directory.
func from(dir, name string) string {
	if name == "" || !isPath(name) || path.IsAbs(name) {
		return name
	}

	// A path stays one, also where it has become short.
	return path.Clean(dir) + "/" + name
}

// locate returns the path of what a name is, and what it holds.
func (r *Reader) locate(at Place, name string) (string, []byte, error) {
	if isPath(name) {
		raw, err := r.read(path.Clean(name))

		return path.Clean(name), raw, err
	}

	dirs := at.directories()
	for _, dir := range dirs {
		file := path.Join(dir, "base", name+".yaml")

		raw, err := r.read(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, raw, err
		}
	}

	return "", nil, fmt.Errorf("there is no base/%s.yaml in %s", name, strings.Join(dirs, ", "))
}
