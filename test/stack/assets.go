// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// envAssets names the environment variable envtest finds its binaries by.
const envAssets = "KUBEBUILDER_ASSETS"

// Assets returns a directory laid out as envtest wants it, with etcd, kube-apiserver and kubectl; only
// those are built. A directory the caller's KUBEBUILDER_ASSETS names is taken as it is. Progress goes
// to standard error.
func Assets(ctx context.Context) (string, error) {
	names := []string{etcd, kubeAPIServer, kubectl}
	if dir := os.Getenv(envAssets); dir != "" {
		return dir, haveAll(dir, names)
	}
	want := slices.DeleteFunc(tools(), func(t tool) bool { return !slices.Contains(names, t.name) })
	built, err := build(ctx, os.Stderr, want)
	if err != nil {
		return "", err
	}
	return envtestLayout(ctx, built, names)
}

// haveAll says what is missing in dir.
func haveAll(dir string, names []string) error {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot use %s: %w", envAssets, err)
		}
	}
	return nil
}

// envtestLayout links the binaries into one directory.
func envtestLayout(ctx context.Context, built Tools, names []string) (string, error) {
	c, err := newCache()
	if err != nil {
		return "", err
	}
	keys := make([]string, 0, len(names))
	for _, name := range names {
		keys = append(keys, filepath.Base(built[name]))
	}
	key := strings.Join(keys, "-")
	err = c.add(ctx, "envtest", key, func(dir string) error {
		for _, name := range names {
			if err := os.Symlink(built.Binary(name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("cannot link %q: %w", name, err)
			}
		}
		return nil
	})
	return c.entry("envtest", key), err
}
